// The archive in a bucket: what every archive promises, its addresses, and what a person reads if S3 refuses it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeArchive } from '#core/ports/test/archive.promises.ts';
import { BUCKET, type BucketServer, KEYS, startBucketServer } from '../../../../test/support/bucket-server.ts';
import { createBucket } from '../bucket.ts';

const ADDRESS = { url: `s3://${BUCKET}/some/where`, bucket: BUCKET, prefix: 'some/where' };
const { region, ...keys } = KEYS;
const signal = new AbortController().signal;

let server: BucketServer;
beforeAll(async () => {
  server = await startBucketServer();
});
afterAll(() => server.close());

const bucketWith = (address: Partial<typeof ADDRESS> = {}, own: Partial<typeof keys & { sessionToken: string }> = {}) =>
  createBucket(
    { ...ADDRESS, ...address },
    {
      region,
      endpoint: `${server.url}/`,
      keys: () => Promise.resolve({ ...keys, ...own }),
      fetch: globalThis.fetch,
      now: Date.now,
    },
  );

describeArchive('a bucket', bucketWith);

test('a bucket without a prefix has the files at its root, and a session token is sent', async () => {
  await bucketWith({ prefix: '' }, { sessionToken: 'of/tests==' }).write(
    'x/day=1/1.parquet',
    new Uint8Array(1),
    signal,
  );
  expect([...server.objects.keys()]).toContain(`/${BUCKET}/x/day=1/1.parquet`);
});

test.each([
  [{}, { accessKeyId: 'AKIAOTHER' }, '403 InvalidAccessKeyId. Check AWS_ACCESS_KEY_ID'],
  [{}, { secretAccessKey: 'another' }, '403 SignatureDoesNotMatch. Check AWS_SECRET_ACCESS_KEY'],
  [{ bucket: 'other' }, {}, '404 NoSuchBucket. Create the bucket, or correct ARCHIVE_URL'],
])('what S3 refuses is a message with its code and what to do: %j %j', async (address, own, message) => {
  const archive = bucketWith(address, own);
  await expect(archive.write('x', new Uint8Array(1), signal)).rejects.toThrow(
    `s3://${BUCKET}/some/where: PUT was answered with ${message}`,
  );
  await expect(archive.read('x', signal)).rejects.toThrow(
    `s3://${BUCKET}/some/where: GET was answered with ${message}`,
  );
});

test('a server that does not answer is named, with the cause', async () => {
  const closed = await startBucketServer();
  await closed.close();
  const fetch: typeof globalThis.fetch = () =>
    Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }));
  const archive = createBucket(ADDRESS, { region, keys: () => Promise.resolve(keys), fetch, now: Date.now });
  await expect(archive.write('x', new Uint8Array(1), signal)).rejects.toThrow(
    `s3://${BUCKET}/some/where: PUT to ${BUCKET}.s3.eu-central-1.amazonaws.com: fetch failed: connect ECONNREFUSED`,
  );
});

test.each([
  ['plain', 'https://plain.s3.eu-central-1.amazonaws.com/some/where/x'],
  // No certificate covers it as a host.
  ['with.dots', 'https://s3.eu-central-1.amazonaws.com/with.dots/some/where/x'],
])("a bucket of Amazon is at Amazon's address: %s", async (bucket, expected) => {
  const asked: string[] = [];
  const fetch = (async (url: string) => {
    asked.push(url);
    return new Response();
  }) as typeof globalThis.fetch;
  const deps = { region, keys: () => Promise.resolve(keys), fetch, now: Date.now };
  await createBucket({ ...ADDRESS, bucket }, deps).write('x', new Uint8Array(1), signal);
  expect(asked).toEqual([expected]);
});

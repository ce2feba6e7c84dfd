// The archive in a real server that speaks S3: versitygw, named by VERSITYGW.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { describeArchive } from '#core/ports/test/archive.promises.ts';
import { newAuthority } from '../../../../test/support/authority.ts';
import { BUCKET, KEYS } from '../../../../test/support/bucket-server.ts';
import { run } from '../../../../test/support/child.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { startVersitygw, whyNoVersitygw } from '../../../../test/support/versitygw.ts';
import { createBucket } from '../bucket.ts';

const { region, ...keys } = KEYS;
const signal = new AbortController().signal;

/** What the reconciler does with `server`. Node reads the authorities when a process starts. */
const IN_PROCESS = `
const [{ createBucket }, { createFetch, createProxyFor }] = await Promise.all(
  ['archive/bucket.ts', 'process/proxies.ts'].map((file) => import('./infra/adapters/' + file)));
const { url, bucket, keys } = server;
const archive = createBucket({ url: 's3://' + bucket + '/some/where', bucket, prefix: 'some/where' }, {
  region: keys.region, endpoint: url, keys: async () => keys, fetch: createFetch(createProxyFor({})), now: Date.now });
const { signal } = new AbortController();
try {
  await archive.write('x', new Uint8Array([1, 2, 3]), signal);
  console.log(String(await archive.read('x', signal)));
} catch (error) {
  console.log(String(error) + ': ' + String(error.cause));
}
process.exit();`;

describeUnless(whyNoVersitygw, 'versitygw', () => {
  let server: Awaited<ReturnType<typeof startVersitygw>>;
  beforeAll(async () => {
    server = await startVersitygw();
  });
  afterAll(() => server.stop());

  const bucketWith = (own: Partial<typeof keys> = {}, bucket = BUCKET, inRegion = region) =>
    createBucket(
      { url: `s3://${bucket}/some/where`, bucket, prefix: 'some/where' },
      {
        region: inRegion,
        endpoint: server.url,
        keys: () => Promise.resolve({ ...keys, ...own }),
        fetch: globalThis.fetch,
        now: Date.now,
      },
    );

  describeArchive('versitygw', bucketWith);

  test('behind a certificate of a private authority, it is used with NODE_EXTRA_CA_CERTS, which the chart value `caConfigMap` sets', async () => {
    const [authority, other] = [await newAuthority(), await newAuthority()];
    const server = await startVersitygw(await authority.sign('127.0.0.1'));
    onTestFinished(server.stop);
    const folder = temporaryFolder();
    const readBack = async (name: string, { cert }: { readonly cert: string }) => {
      writeFileSync(join(folder, name), cert);
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, name) };
      const text = `const server = ${JSON.stringify({ url: server.url, bucket: BUCKET, keys: KEYS })};${IN_PROCESS}`;
      return (await run(process.execPath, ['--input-type=module', '--eval', text], env)).stdout.trim();
    };
    expect(await readBack('private.crt', authority)).toBe('1,2,3');
    expect(await readBack('other.crt', other)).toContain('unable to verify the first certificate');
  });

  test('what it refuses is a message with its code and what to do', async () => {
    for (const [archive, code] of [
      // Its own code for an access key that it does not know.
      [bucketWith({ accessKeyId: 'AKIAOTHER' }), '404 XAdminUserNotFound. Check ARCHIVE_URL, the access key'],
      [bucketWith({ secretAccessKey: 'another' }), '403 SignatureDoesNotMatch. Check AWS_SECRET_ACCESS_KEY'],
      [bucketWith({}, 'other-bucket'), '404 NoSuchBucket. Create the bucket, or correct ARCHIVE_URL'],
      [bucketWith({}, BUCKET, 'us-west-2'), 'Set AWS_REGION to the region of the bucket'],
    ] as const) {
      await expect(archive.write('x', new Uint8Array(1), signal)).rejects.toThrow(code);
      await expect(archive.read('x', signal)).rejects.toThrow(code);
    }
  });
});

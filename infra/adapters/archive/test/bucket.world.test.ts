// The archive in a real server that speaks S3: versitygw, named by VERSITYGW.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeArchive } from '#core/ports/test/archive.promises.ts';
import { BUCKET, KEYS } from '../../../../test/support/bucket-server.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { startVersitygw, whyNoVersitygw } from '../../../../test/support/versitygw.ts';
import { createBucket } from '../bucket.ts';

const { region, ...keys } = KEYS;
const signal = new AbortController().signal;

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

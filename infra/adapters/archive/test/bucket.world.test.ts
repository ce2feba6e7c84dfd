// The archive in a real server that speaks S3: versitygw, named by VERSITYGW.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeArchive } from '#core/ports/test/archive.promises.ts';
import { BUCKET, KEYS } from '../../../../test/support/bucket-server.ts';
import { type Child, startChild } from '../../../../test/support/child.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { freePort } from '../../../platforms/local/state/ports.ts';
import { createBucket } from '../bucket.ts';

const VERSITYGW = process.env.VERSITYGW ?? 'versitygw';
const whyNot =
  spawnSync(VERSITYGW, ['--version']).status === 0
    ? undefined
    : 'VERSITYGW names no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)';
const { region, ...keys } = KEYS;
const signal = new AbortController().signal;

describeUnless(whyNot, 'versitygw', () => {
  let server: Child;
  let endpoint: string;
  beforeAll(async () => {
    const folder = temporaryFolder();
    for (const name of ['root', 'metadata']) mkdirSync(join(folder, name));
    mkdirSync(join(folder, 'root', BUCKET));
    const port = `127.0.0.1:${await freePort(0, 'any')}`;
    endpoint = `http://${port}`;
    server = startChild(
      VERSITYGW,
      ['--port', port, '--region', region, 'posix', '--sidecar', join(folder, 'metadata'), join(folder, 'root')],
      { env: { ...process.env, ROOT_ACCESS_KEY: keys.accessKeyId, ROOT_SECRET_KEY: keys.secretAccessKey } },
    );
    await server.until(() =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    );
  });
  afterAll(async () => {
    await server.end();
  });

  const bucketWith = (own: Partial<typeof keys> = {}, bucket = BUCKET, inRegion = region) =>
    createBucket(
      { url: `s3://${bucket}/some/where`, bucket, prefix: 'some/where' },
      {
        region: inRegion,
        endpoint,
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

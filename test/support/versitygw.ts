// A real server that speaks S3, with one bucket and one access key: versitygw, which VERSITYGW names.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { BUCKET, KEYS } from './bucket-server.ts';
import { startChild } from './child.ts';
import { temporaryFolder } from './temporary-folder.ts';

const VERSITYGW = process.env.VERSITYGW ?? 'versitygw';

/** Undefined: it can be started. */
export const whyNoVersitygw: string | undefined =
  spawnSync(VERSITYGW, ['--version']).status === 0
    ? undefined
    : 'VERSITYGW names no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)';

export async function startVersitygw(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const folder = temporaryFolder();
  const [root, metadata] = [join(folder, 'root'), join(folder, 'metadata')];
  for (const made of [root, metadata, join(root, BUCKET)]) mkdirSync(made);
  const address = `127.0.0.1:${await freePort(0, 'any')}`;
  const url = `http://${address}`;
  const server = startChild(
    VERSITYGW,
    ['--port', address, '--region', KEYS.region, 'posix', '--sidecar', metadata, root],
    { env: { ...process.env, ROOT_ACCESS_KEY: KEYS.accessKeyId, ROOT_SECRET_KEY: KEYS.secretAccessKey } },
  );
  await server.until(() =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  );
  return { url, stop: async () => void (await server.end()) };
}

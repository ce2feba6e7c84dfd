// A real server that speaks S3, with one bucket and one access key: versitygw, which VERSITYGW names.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, onFreePort } from '../../infra/platforms/local/state/ports.ts';
import { BUCKET, KEYS } from './bucket-server.ts';
import { startChild } from './child.ts';
import { temporaryFolder } from './temporary-folder.ts';

const VERSITYGW = process.env.VERSITYGW ?? 'versitygw';

/** Undefined: it can be started. */
export const whyNoVersitygw: string | undefined =
  spawnSync(VERSITYGW, ['--version']).status === 0
    ? undefined
    : 'VERSITYGW names no versitygw (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)';

/** `tls`: PEM texts for 127.0.0.1. Absent: HTTP. */
export async function startVersitygw(tls?: {
  readonly cert: string;
  readonly key: string;
}): Promise<{ readonly url: string; stop(): Promise<void> }> {
  return onFreePort(
    () => freePort(0, 'any'),
    (port) => start(port, tls),
  );
}

async function start(port: number, tls: Parameters<typeof startVersitygw>[0]) {
  const folder = temporaryFolder();
  const [root, metadata] = [join(folder, 'root'), join(folder, 'metadata')];
  for (const made of [root, metadata, join(root, BUCKET)]) mkdirSync(made);
  const address = `127.0.0.1:${port}`;
  const url = `${tls === undefined ? 'http' : 'https'}://${address}`;
  const files = Object.entries(tls ?? {}).flatMap(([name, text]) => {
    writeFileSync(join(folder, name), text);
    return [`--${name}`, join(folder, name)];
  });
  const server = startChild(
    VERSITYGW,
    ['--port', address, '--region', KEYS.region, ...files, 'posix', '--sidecar', metadata, root],
    { env: { ...process.env, ROOT_ACCESS_KEY: KEYS.accessKeyId, ROOT_SECRET_KEY: KEYS.secretAccessKey } },
  );
  // It answers, or shows a certificate that this process does not trust.
  await server.until(() =>
    fetch(url).then(
      () => true,
      ({ cause }: Error) => /CERT|VERIFY/.test(String(Object(cause).code)),
    ),
  );
  return { url, stop: async () => void (await server.end()) };
}

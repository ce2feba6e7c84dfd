// A gateway of the chaos harness that runs as a Worker, on its Upstash, its database and its snapshot.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openCertificates } from '../../../infra/platforms/local/cluster/certificates.ts';
import { DEPLOYABLES, writeBundles } from '../../../infra/tools/build.ts';
import { type RunningWorkers, startWorkers } from '../../platforms/miniflare.ts';
import { TOKEN } from '../../support/upstash.ts';
import type { Harness } from './harness.ts';

const OUTPUT = 'cloudflare/gateway.mjs';

/** Stops like a machine that disappears: unfinished work is not awaited. */
export async function startWorker({ folder, upstash, connection, snapshot }: Harness): Promise<RunningWorkers> {
  await writeBundles(
    folder,
    DEPLOYABLES.filter(({ output }) => output === OUTPUT),
  );
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, (await openCertificates(folder, new Date())).ca);
  const { host, port, username, password, dbname } = connection;
  const address = `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/${dbname}`;
  const worker = {
    name: 'gateway' as const,
    scriptPath: join(folder, OUTPUT),
    services: {},
    bindings: {
      INSTANCE: 'default/main',
      CREDENTIALS: '{}',
      UPSTASH_REDIS_REST_URL: upstash.url,
      UPSTASH_REDIS_REST_TOKEN: TOKEN,
    },
    hyperdrives: { HYPERDRIVE: address },
    namespaces: { SNAPSHOTS: { 'default/main': snapshot } },
  };
  return startWorkers([worker], ca);
}

// The gateway function as a Node process: one instance, everything it needs mounted as files, no access to the API server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMemoryStore } from '#adapters/memory/store.ts';
import { createMetrics } from '#adapters/metrics.ts';
import { createMountedCredentials, createMountedFile } from '#adapters/mounted.ts';
import { createOutbox } from '#adapters/outbox/outbox.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { toDatabaseConnection } from '#core/connections.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { Snapshot } from '#core/snapshot.ts';
import { createGateway } from '../../functions/gateway/app.ts';
import { GatewayEnvironment, readEnvironment } from '../env.ts';
import { nodeDependencies } from '../node.ts';
import { main, processLog, runServer } from '../process.ts';

main(async () => {
  const environment = readEnvironment(GatewayEnvironment, process.env);
  const log = processLog('gateway', environment.LOG_LEVEL);
  const node = nodeDependencies();
  const metrics = createMetrics();
  const snapshots = createMountedFile(environment.SNAPSHOT_FILE, node.clock.now, parseSnapshot);
  const instance = snapshots.current()?.instance;
  if (instance === undefined) throw new Error(`no snapshot that this version reads in ${environment.SNAPSHOT_FILE}`);
  const database = createDatabase(readConnection(environment.DATABASE_DIR), { log });
  const outbox = createOutbox({ folder: environment.OUTBOX_DIR, log });
  const store = createMemoryStore({ clock: node.clock });
  const ledger = createLedger({ ...node, instanceUid: instance.uid, store, books: database, outbox, log, metrics });
  await ledger.start();
  const app = createGateway({
    ...node,
    snapshots,
    credentials: createMountedCredentials(environment.CREDENTIALS_DIR, node.clock.now),
    policies: database.policies(instance.uid),
    ledger,
    upstream: createUpstream(),
    log,
    metrics,
  });
  const close = async () => {
    await ledger.close();
    await outbox.close();
    await database.close();
  };
  const server = { fetch: app.fetch, port: environment.PORT, host: environment.HOST };
  await runServer({ name: 'gateway', log, server, close });
});

/** A snapshot of a version that is not ours is no snapshot: the last good one is kept. */
function parseSnapshot(text: string): Snapshot | undefined {
  try {
    return Snapshot.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The Secret is mounted under fixed names, so that this reads no spec. */
function readConnection(folder: string): DatabaseConnection {
  const names = ['host', 'username', 'password', 'dbname'] as const;
  const data = Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name)).toString('base64')]));
  const keys = { hostSecret: 'host', usernameSecret: 'username', passwordSecret: 'password', dbnameSecret: 'dbname' };
  const connection = toDatabaseConnection({ nameRef: 'mounted', keys }, data);
  if (connection.ok) return connection.value;
  throw new Error(`${join(folder, connection.failure.entry)} ${connection.failure.problem}`);
}

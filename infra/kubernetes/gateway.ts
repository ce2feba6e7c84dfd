// The gateway function as a Node process: one instance, everything it needs mounted as files, no access to the API server.
import { createMetrics } from '#adapters/metrics.ts';
import { createMountedCredentials, createMountedFile } from '#adapters/mounted.ts';
import { openStore } from '#adapters/open-store.ts';
import { createOutbox } from '#adapters/outbox/outbox.ts';
import { createDatabase } from '#adapters/postgres/database.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { createLedger } from '#core/ledger/ledger.ts';
import type { Log } from '#core/ports/clock.ts';
import type { Timer } from '#core/ports/platform.ts';
import { reasonOf } from '#core/reason.ts';
import { createGateway } from '../../functions/gateway/app.ts';
import { GatewayEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/read-environment.ts';
import { nodeDependencies } from '../node/platform.ts';
import { main, processLog, runServer } from '../node/process.ts';
import { openTraces } from '../node/traces.ts';
import { readMounts, toSnapshot } from './mounts.ts';

const TRY_AGAIN_AFTER = 1_000;

main(async () => {
  const environment = readEnvironment(GatewayEnvironment, process.env);
  const { instanceUid, connection, storeConnection } = readMounts(environment);
  const ownLog = processLog('gateway', environment.LOG_LEVEL);
  const traces = await openTraces(environment, 'gateway', ownLog);
  const log = traces.logged(ownLog);
  const node = nodeDependencies();
  const { now } = node.clock;
  const metrics = createMetrics();
  const upstream = createUpstream();
  const database = createDatabase(connection, { log });
  const outbox = createOutbox({ folder: environment.OUTBOX_DIR, log });
  const { store, isShared, close: closeStore } = openStore(storeConnection, { instanceUid, clock: node.clock, log });
  const epochs = isShared ? { epochs: database.epochs(instanceUid) } : {};
  const money = { instanceUid, store, books: database, ...epochs, outbox };
  const ledger = createLedger({ ...node, ...money, tick: afterReading, log, metrics });
  void startWhenPossible(ledger.start, node.timer, log);
  const app = createGateway({
    ...node,
    snapshots: createMountedFile(environment.SNAPSHOT_FILE, now, toSnapshot),
    credentials: createMountedCredentials(environment.CREDENTIALS_DIR, now),
    policies: database.policies(instanceUid),
    ledger,
    upstream,
    log,
    metrics,
  });
  const close = async () => {
    await ledger.close();
    await outbox.close();
    await closeStore();
    await upstream.close();
    await database.close();
    await traces.close();
  };
  const server = { fetch: app.fetch, port: environment.PORT, host: environment.HOST, traces };
  await runServer({ log, server, metrics: { ...metrics, port: environment.METRICS_PORT }, close });
});

/** When every socket that has something has been read: what these requests ask of the store goes in one call. */
function afterReading(callback: () => void): void {
  setImmediate(callback);
}

/** What an earlier process left in the outbox is booked first; until the database takes it, requests are answered with 503. */
async function startWhenPossible(start: () => Promise<void>, timer: Timer, log: Log): Promise<void> {
  for (let waits = false; ; waits = true) {
    try {
      return await start();
    } catch (error) {
      if (!waits) log.warn('the ledger waits for the database', { why: reasonOf(error) });
      await new Promise<void>((resolve) => void timer(TRY_AGAIN_AFTER, resolve));
    }
  }
}

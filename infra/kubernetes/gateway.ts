// The gateway function as a Node process: one instance, everything it needs mounted as files, no access to the API server.
import { createMetrics } from '#adapters/metrics.ts';
import { createMountedCredentials, createMountedFile } from '#adapters/mounted.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { GatewayEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/variable.ts';
import { openGateway } from '../node/gateway.ts';
import { nodeDependencies } from '../node/platform.ts';
import { main, processLog, runServer } from '../node/process.ts';
import { openTraces } from '../node/traces.ts';
import { readMounts, toSnapshot } from './mounts.ts';

main(async () => {
  const environment = readEnvironment(GatewayEnvironment, process.env);
  const ownLog = processLog('gateway', environment.LOG_LEVEL);
  const traces = await openTraces(environment, 'gateway', ownLog);
  const log = traces.logged(ownLog);
  const node = nodeDependencies();
  const { now } = node.clock;
  const metrics = createMetrics();
  const upstream = createUpstream();
  const gateway = openGateway({
    ...node,
    ...readMounts(environment),
    folder: environment.OUTBOX_DIR,
    snapshots: createMountedFile(environment.SNAPSHOT_FILE, now, toSnapshot),
    credentials: createMountedCredentials(environment.CREDENTIALS_DIR, now),
    upstream,
    log,
    metrics,
  });
  const close = async () => {
    await gateway.close();
    await upstream.close();
    await traces.close();
  };
  const server = { handle: gateway.handle, port: environment.PORT, host: environment.HOST, traces };
  await runServer({ log, server, metrics: { ...metrics, port: environment.METRICS_PORT }, close });
});

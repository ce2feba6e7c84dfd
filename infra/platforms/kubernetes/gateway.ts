// The gateway of one instance as a Node process. All that it needs is mounted as files, without access to the API
// server.
import { setTimeout as pause } from 'node:timers/promises';
import { createMountedCredentials, createMountedFile } from '#adapters/process/mounted-files.ts';
import { createFetch, createProxyFor } from '#adapters/process/proxies.ts';
import { createPodIdentity } from '#adapters/upstream/pod-identity.ts';
import { createUpstream } from '#adapters/upstream/undici.ts';
import { openGateway } from '../../runtime/node/gateway.ts';
import { metricsOf } from '../../runtime/node/metrics.ts';
import { processMemory } from '../../runtime/node/platform.ts';
import { main, openFunction } from '../../runtime/node/process.ts';
import { createLogins, readStart, toSnapshot } from './mounts.ts';
import { keepMaintained } from './own-store.ts';

/**
 * Milliseconds that a new Pod waits for its database before it gets requests. If the database hangs, it then listens
 * and responds with 503.
 */
const LEDGER_FIRST = 2_000;
/**
 * Some hundred clients that connect again and again fill the queue of one listener: while turns take 5 ms, a new
 * connection waits for 3 s, and with sixteen listeners for 0.3 s (measured).
 */
const LISTENERS = process.platform === 'linux' ? 16 : 1;

main(async () => {
  const { environment, mounts } = readStart(process.env);
  const { run, ...parts } = await openFunction('gateway', environment);
  const { now } = parts.clock;
  const { AWS_ROLE_ARN: arn, AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile } = environment;
  const role = arn === undefined || tokenFile === undefined ? undefined : { arn, tokenFile };
  const proxyFor = createProxyFor(environment);
  const fetch = createFetch(proxyFor);
  const upstream = createUpstream({ fetch, proxyFor, pod: createPodIdentity({ role, fetch, now }) });
  const gateway = openGateway({
    ...parts,
    ...mounts,
    fetch,
    readLogins: createLogins(environment, now),
    folder: environment.JOURNAL_DIR,
    snapshots: createMountedFile(environment.SNAPSHOT_FILE, now, toSnapshot(parts.log)),
    credentials: createMountedCredentials(environment.CREDENTIALS_DIR, now),
    upstream,
    memory: processMemory(),
  });
  const { instance, storeConnection } = mounts;
  const reporter = { ...parts, instanceUid: instance.uid, metrics: metricsOf(parts.metrics, instance) };
  const stopMaintaining = storeConnection.type === 'memory' ? keepMaintained(gateway.flush, reporter) : () => {};
  await Promise.race([gateway.started, pause(LEDGER_FIRST)]);
  await run({ ...gateway, listeners: LISTENERS }, async (millis) => {
    stopMaintaining();
    await gateway.close(0, millis).finally(upstream.close);
  });
});

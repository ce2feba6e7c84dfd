// An upgrade to a version with another schema: new Pods must not replace Pods that serve.
import { expect, onTestFinished, test, vi } from 'vitest';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { openGateway } from '../gateway.ts';
import { nodeDependencies } from '../platform.ts';
import { serve } from '../serve.ts';

test('a gateway is not ready while its database has the schema of another version, and is alive', async () => {
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const change = (by: number) =>
    server.query(connection, `update gateway_operator.migration set version = version + (${by})`);
  await change(1);
  const log = createMemoryLog();
  const gateway = openGateway({
    ...nodeDependencies(),
    instance: { uid: 'instance', namespace: 'default', name: 'sample' },
    folder: temporaryFolder(),
    log,
    metrics: createMetrics(),
    connection,
    storeConnection: { type: 'memory' },
    snapshots: { current: () => ({}) as Snapshot },
    credentials: { read: () => undefined },
    upstream: () => Promise.reject(new Error('nothing is called')),
  });
  const { url, close } = await serve({ handle: gateway.handle, port: 0, host: '127.0.0.1' });
  onTestFinished(async () => {
    await close(0);
    await gateway.close();
  });
  const statusOf = async (path: string) => (await fetch(`${url}${path}`)).status;
  await vi.waitFor(async () => expect(await statusOf('/readyz')).toBe(503));
  expect(await statusOf('/healthz')).toBe(200);
  expect(JSON.stringify(log.lines)).toContain('a later version made it');
  await change(-1);
  await vi.waitFor(async () => expect(await statusOf('/readyz')).toBe(200), 10_000);
});

import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createMemoryCluster } from '../../../../../test/doubles/cluster.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { withTakenPorts } from '../../../../../test/support/taken-ports.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { nodeDependencies } from '../../../../runtime/node/platform.ts';
import { openCertificates } from '../../cluster/certificates.ts';
import { startFunctions } from '../../functions/functions.ts';
import { freePort, gatewayPortOf } from '../../state/ports.ts';
import { openState } from '../../state/state.ts';

test('where a later server cannot listen, those before it end with the start', async () => {
  const state = await openState(join(temporaryFolder(), 'state'), false);
  const stops: Array<() => Promise<unknown>> = [];
  const cluster = createMemoryCluster(nodeDependencies());
  const gatewayPort = await freePort(0, 'any');
  const starting = startFunctions(
    { state, log: silentLog, onStop: (stop) => void stops.unshift(stop) },
    {
      cluster,
      accounts: { admission: cluster, reconcile: cluster },
      certificates: { ca: '', cert: 'no certificate', key: 'no key' },
      pickGatewayPort: async () => gatewayPort,
    },
  );
  await expect(starting).rejects.toThrow('PEM');
  const ports = [gatewayPort, state.remembered.ports.reconcile ?? 0];
  const areFree = () => Promise.all(ports.map(async (port) => (await freePort(port, 'any')) === port));
  expect(await areFree()).toEqual([false, false]);
  for (const stop of stops) await stop();
  expect(await areFree()).toEqual([true, true]);
  state.release();
});

test('a function whose port another process takes a moment before listens on another port', async () => {
  const own = await openState(join(temporaryFolder(), 'state'), false);
  const { state, taken } = withTakenPorts(own);
  const stops: Array<() => Promise<unknown>> = [];
  onTestFinished(async () => {
    for (const stop of stops) await stop();
    own.release();
  });
  const wanted = await freePort(0, 'any');
  const cluster = createMemoryCluster(nodeDependencies());
  const addresses = await startFunctions(
    { state, log: silentLog, onStop: (stop) => void stops.unshift(stop) },
    {
      cluster,
      accounts: { admission: cluster, reconcile: cluster },
      certificates: await openCertificates(own.path('certificates'), new Date()),
      pickGatewayPort: async () => (await gatewayPortOf(state, wanted)).port,
    },
  );
  expect([...taken.keys()]).toEqual(['gateway', 'reconcile', 'admission']);
  for (const [part, address] of Object.entries(addresses)) {
    const port = Number(new URL(address).port);
    expect(port).not.toBe(taken.get(part));
    expect(own.remembered.ports[part]).toBe(port);
  }
});

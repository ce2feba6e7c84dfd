import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemoryCluster } from '../../../../../test/doubles/cluster.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { nodeDependencies } from '../../../../runtime/node/platform.ts';
import { startFunctions } from '../../functions/functions.ts';
import { freePort } from '../../state/ports.ts';
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
      gatewayPort,
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

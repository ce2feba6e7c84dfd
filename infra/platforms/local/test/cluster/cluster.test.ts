// The cluster of the local stack.
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { withTakenPorts } from '../../../../../test/support/taken-ports.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { openCertificates } from '../../cluster/certificates.ts';
import { openCluster } from '../../cluster/cluster.ts';
import { readOptions } from '../../options.ts';
import { openState } from '../../state/state.ts';

test('an embedded cluster whose port another process takes a moment before listens on another port', async () => {
  const folder = join(temporaryFolder(), 'state');
  const own = await openState(folder, false);
  const { state, taken } = withTakenPorts(own);
  const stops: Array<() => Promise<unknown>> = [];
  onTestFinished(async () => {
    for (const stop of stops) await stop();
    own.release();
  });
  const options = readOptions(['--state', folder]) ?? expect.fail();
  const certificates = await openCertificates(own.path('certificates'), new Date());
  const context = { options, state, log: silentLog, onStop: (stop: () => Promise<unknown>) => void stops.push(stop) };
  const { url } = await openCluster(context, certificates);
  expect(taken.has('cluster')).toBe(true);
  expect(url).toBe(`https://127.0.0.1:${own.remembered.ports.cluster}`);
  expect(own.remembered.ports.cluster).not.toBe(taken.get('cluster'));
});

// The port of the gateway, from start to start.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { freePort, gatewayPortOf } from '../../state/ports.ts';
import { openState } from '../../state/state.ts';

test('a gateway that moved from a taken port is found there after a restart, unless another port is wanted', async () => {
  const folder = join(temporaryFolder(), 'state');
  const [other, server] = [createServer(), createServer()];
  const wanted = await freePort(0, 'any');
  await once(other.listen(wanted, '127.0.0.1'), 'listening');
  const first = await openState(folder, false);
  const moved = await gatewayPortOf(first, wanted);
  expect(moved.taken).toBe(wanted);
  first.release();
  other.close();

  const second = await openState(folder, false);
  expect(await gatewayPortOf(second, undefined)).toEqual({ port: moved.port, taken: undefined });
  // A port that has been taken since then is named.
  await once(server.listen(moved.port, '127.0.0.1'), 'listening');
  expect((await gatewayPortOf(second, undefined)).taken).toBe(moved.port);
  expect(await gatewayPortOf(second, wanted)).toEqual({ port: wanted, taken: undefined });
  server.close();
  second.release();
});

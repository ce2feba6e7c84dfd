// A local stack's state whose ports other processes take a moment after they were found free.
import { createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import type { State } from '../../infra/platforms/local/state/state.ts';

/** The first port that is picked for each part is taken before the part can listen; `taken`: these ports by part. */
export function withTakenPorts(state: State) {
  const taken = new Map<string, number>();
  const rememberPort = (part: string, port: number) => {
    state.rememberPort(part, port);
    if (taken.has(part)) return;
    taken.set(part, port);
    const other = createServer();
    // A process of another test may have been faster: the port is taken then, too.
    other.on('error', () => undefined).listen(port, '127.0.0.1');
    onTestFinished(() => void other.close());
  };
  return { state: { ...state, rememberPort }, taken };
}

// Ports on 127.0.0.1 that are free, those of the last start, and starts of servers on them.
import { createServer } from 'node:net';
import type { State } from './state.ts';

/** The port `wanted` if it is free, else the next free port; any free port for 0. */
export async function freePort(wanted: number | undefined, otherwise: 'next' | 'any'): Promise<number> {
  for (let port = wanted ?? 0; port < 65_536; port += 1) {
    const got = await tryPort(port);
    if (got !== undefined) return got;
    if (otherwise === 'any') return freePort(0, 'any');
  }
  throw new Error(`no free port from ${wanted} up`);
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : undefined));
    });
  });
}

const MAX_ATTEMPTS = 5;

/**
 * Starts a server on a port that was free when it was picked. If another process has taken the port meanwhile, the next
 * pick is tried. A failed start leaves nothing that listens.
 */
export async function onFreePort<T>(pick: () => Promise<number>, start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await pick();
    try {
      return await start(port);
    } catch (error) {
      // Programs report a port in use in different words, so the port itself is checked.
      if (attempt === MAX_ATTEMPTS || (await tryPort(port)) !== undefined) throw error;
    }
  }
}

/** The port of the last start if it is free, else another; recorded for the next start. */
export async function portOf(state: State, name: string): Promise<number> {
  const port = await freePort(state.remembered.ports[name], 'any');
  state.rememberPort(name, port);
  return port;
}

/**
 * The gateway's port: `wanted`, else that of the last start, else 4000; the next free port if that is `taken`.
 */
export async function gatewayPortOf(state: Pick<State, 'remembered' | 'rememberPort'>, wanted: number | undefined) {
  const first = wanted ?? state.remembered.ports.gateway ?? 4000;
  const port = await freePort(first, 'next');
  if (wanted !== 0) state.rememberPort('gateway', port);
  return { port, taken: first === 0 || port === first ? undefined : first };
}

// Connections of a server: open ones, and a bound at which a connection without a request gives way to a new one.

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionOptions {
  /** The event of a new connection. */
  readonly opened: 'connection' | 'secureConnection';
  readonly max?: number | undefined;
}

/**
 * Connections that are open. Where there are `max`, the one that has been without a request for longest is closed for each new one: kept for the next request,
 * silent, or with half a head. Where all have requests, the new one is closed.
 */
export function connectionsOf(
  server: Server,
  { opened, max = Number.POSITIVE_INFINITY }: ConnectionOptions,
): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  /** Those without a request, for the longest time first. */
  const idle = new Set<Socket>();
  /** The last request of each connection: a client may send some before the first is answered. */
  const last = new WeakMap<Socket, ServerResponse>();
  server.on(opened, (socket: Socket) => {
    if (open.size >= max) {
      const [longest] = idle;
      if (longest === undefined) return void socket.destroy();
      forget(longest);
      longest.destroy();
    }
    open.add(socket);
    idle.add(socket);
    socket.on('close', () => forget(socket));
  });
  server.prependListener('request', ({ socket }, outgoing) => {
    idle.delete(socket);
    last.set(socket, outgoing);
    outgoing.on('close', () => {
      if (open.has(socket) && last.get(socket) === outgoing) idle.add(socket);
    });
  });
  return open;

  function forget(socket: Socket): void {
    open.delete(socket);
    idle.delete(socket);
  }
}

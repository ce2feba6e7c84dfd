// Connections of a server: open ones, and a bound at which a connection without a request gives way to a new one.

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * One connection. Over TLS it has two sockets: that of the network, and, from the end of the handshake on, the one with
 * its requests.
 */
interface Connection {
  readonly network: Socket;
  socket: Socket;
  /** The last request: a client may send some before the first is answered. */
  last?: ServerResponse;
}

/**
 * Connections that are open. Where there are `max`, the one that has been without a request for longest is closed for
 * each new one: kept for the next request, silent, with half a head, or with half a TLS handshake. Where all have
 * requests, the new one is closed.
 */
export function connectionsOf(server: Server, max = Number.POSITIVE_INFINITY): ReadonlySet<Pick<Connection, 'socket'>> {
  const open = new Set<Connection>();
  /** Those without a request, for the longest time first. */
  const idle = new Set<Connection>();
  /** Nothing else that Node shows is the same for both sockets of a connection. */
  const byPeer = new Map<string, Connection>();
  server.on('connection', (network: Socket) => {
    if (open.size >= max) {
      const [longest] = idle;
      if (longest === undefined) return void network.destroy();
      forget(longest);
      longest.network.destroy();
    }
    const connection = { network, socket: network };
    open.add(connection);
    idle.add(connection);
    byPeer.set(peerOf(network), connection);
    network.on('close', () => forget(connection));
  });
  server.on('secureConnection', (socket: Socket) => {
    const connection = byPeer.get(peerOf(socket));
    if (connection !== undefined) connection.socket = socket;
  });
  server.prependListener('request', ({ socket }, outgoing) => {
    const connection = byPeer.get(peerOf(socket));
    if (connection === undefined) return;
    idle.delete(connection);
    connection.last = outgoing;
    outgoing.on('close', () => {
      if (open.has(connection) && connection.last === outgoing) idle.add(connection);
    });
  });
  return open;

  function forget(connection: Connection): void {
    open.delete(connection);
    idle.delete(connection);
    const peer = peerOf(connection.network);
    if (byPeer.get(peer) === connection) byPeer.delete(peer);
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

// Connections of a server: open ones, and bounds on their number and on what each asks before it is answered.

import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * One connection. Over TLS it has two sockets: that of the network, and, from the end of the handshake on, the one with
 * its requests.
 */
interface Connection {
  readonly network: Socket;
  socket: Socket;
  /** Requests whose answers have not gone out, and bytes of the heads of those that wait for others. */
  requests: number;
  waiting: number;
}

/** Requests that a client may send before the first is answered, and bytes of the heads of those that wait. */
const MAX_REQUESTS = 16;
const MAX_WAITING = 32 * 1024;
/** Bytes that a name or a value takes beside its text. */
const TEXT = 32;

export type Connections = ReturnType<typeof createConnections>;

/**
 * Connections that are open. Where there are `max`, the one that has been without a request for longest is closed for
 * each new one: kept for the next request, silent, with half a head, or with half a TLS handshake. Where all have
 * requests, the new one is closed, or the oldest with `closesOldest`: for a port whose answers are ready immediately, and
 * whose clients may leave them unread. So is one that asks for too much before it is answered.
 */
export function createConnections(max = Number.POSITIVE_INFINITY, closesOldest = false) {
  const open = new Set<Connection>();
  /** Those without a request, for the longest time first. */
  const idle = new Set<Connection>();
  const bySocket = new WeakMap<Socket, Connection>();
  /** Nothing else that Node shows is the same for both sockets of a connection. */
  const byPeer = new Map<string, Connection>();

  /** The answer to a request, counted where Node makes it: some requests are answered by Node itself. */
  class CountedResponse extends ServerResponse<IncomingMessage> {
    constructor(...of: ConstructorParameters<typeof ServerResponse<IncomingMessage>>) {
      super(...of);
      const [{ socket }] = of;
      const connection = bySocket.get(socket);
      if (connection !== undefined) count(connection, this);
    }
  }

  return {
    open: open as ReadonlySet<Pick<Connection, 'socket'>>,
    /** For the server's options. */
    ServerResponse: CountedResponse,
    /** Counts the connections of this server from now on. */
    watch(server: Server): void {
      server.on('connection', enter);
      server.on('secureConnection', (socket: Socket) => {
        const connection = byPeer.get(peerOf(socket));
        if (connection === undefined) return;
        connection.socket = socket;
        bySocket.set(socket, connection);
      });
    },
  };

  function enter(network: Socket): void {
    if (open.size >= max) {
      const [oldest] = open;
      const [oldestIdle = closesOldest ? oldest : undefined] = idle;
      if (oldestIdle === undefined) return void network.destroy();
      forget(oldestIdle);
      oldestIdle.network.destroy();
    }
    const connection = { network, socket: network, requests: 0, waiting: 0 };
    open.add(connection);
    idle.add(connection);
    byPeer.set(peerOf(network), connection);
    bySocket.set(network, connection);
    network.on('close', () => forget(connection));
  }

  function count(connection: Connection, response: ServerResponse<IncomingMessage>): void {
    idle.delete(connection);
    const size = connection.requests === 0 ? 0 : sizeOf(response.req);
    connection.requests += 1;
    connection.waiting += size;
    if (connection.requests > MAX_REQUESTS || connection.waiting > MAX_WAITING) return void cut(connection);
    response.on('close', () => {
      connection.requests -= 1;
      connection.waiting -= size;
      if (connection.requests === 0 && open.has(connection)) idle.add(connection);
    });
  }

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

function sizeOf({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((bytes, text) => bytes + text.length + TEXT, url.length);
}

/** The parser of a socket, which Node's types do not name. */
interface SocketWithParser {
  readonly parser?: { onIncoming: (request: { upgrade: boolean }) => number } | null;
}

/** Node's parser skips the body of such a request, and everything behind it. */
const UPGRADE = 2;

function cut({ network, socket }: Connection): void {
  network.destroy();
  const { parser } = socket as SocketWithParser;
  if (!parser) return;
  // Thousands of requests may be in the bytes that are being parsed. They end at the next one, as at an upgrade.
  parser.onIncoming = (request) => {
    request.upgrade = true;
    return UPGRADE;
  };
}

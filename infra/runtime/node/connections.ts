// Connections of a server, with limits of their number, and of the requests that each sends before it gets a reply.

import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * One connection. Over TLS it has two sockets: that of the network, and, after the handshake, the one with its
 * requests.
 */
interface Connection {
  readonly network: Socket;
  socket: Socket;
  /** The number of requests whose replies are not sent, and the bytes of the heads of requests that wait for others. */
  requests: number;
  waiting: number;
}

/** The maximum number of requests before the first reply, and of bytes of the heads of waiting requests. */
const MAX_REQUESTS = 16;
const MAX_WAITING = 32 * 1024;
/** Bytes that a name or a value takes beside its text. */
const TEXT = 32;

export type Connections = ReturnType<typeof createConnections>;

/**
 * Open connections. If there are `max`, each new connection replaces the one that has been without a request for
 * longest: an idle one, or one with half a head or half a TLS handshake. If all have requests, the new one is closed,
 * or with `closesOldest` the oldest: for a port whose replies are ready immediately, and whose clients may not read
 * them. A connection with too many requests before its first reply is closed too.
 */
export function createConnections(max = Number.POSITIVE_INFINITY, closesOldest = false) {
  const open = new Set<Connection>();
  /** Connections without a request, the longest time first. */
  const idle = new Set<Connection>();
  const bySocket = new WeakMap<Socket, Connection>();
  /** Nothing else that Node shows is the same for both sockets of a connection. */
  const byPeer = new Map<string, Connection>();

  /** The reply to a request, counted when Node creates it: Node itself replies to some requests. */
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

/** The parser of a socket, which Node's types lack. */
interface SocketWithParser {
  readonly parser?: { onIncoming: (request: { upgrade: boolean }) => number } | null;
}

/** A result of `onIncoming`: Node's parser then skips the body of the request, and everything after it. */
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

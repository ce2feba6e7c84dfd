// How does a fetch handler become an HTTP server in Node, and how does it stop without cutting anybody off?
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Connection } from '#core/ports/connection.ts';
import { lend } from './connection.ts';
import type { Traces } from './otel.ts';
import { cutStalled } from './stalled-clients.ts';

export interface ServeOptions {
  fetch(request: Request, connection: Connection): Response | Promise<Response>;
  /** 0: any free port. */
  readonly port: number;
  readonly host: string;
  readonly tls?: Tls;
  /** Milliseconds that a client may take nothing of its reply. */
  readonly stalled?: number | undefined;
  /** Absent: nothing is traced. */
  readonly traces?: Pick<Traces, 'request'>;
}

/** PEM texts. */
export interface Tls {
  readonly cert: string;
  readonly key: string;
}

export interface Served {
  /** With the port that was really taken, without a slash at its end. */
  readonly url: string;
  readonly port: number;
  /** Shows this certificate on every connection from now on; does nothing where no TLS is spoken. Throws what is no certificate. */
  renew(tls: Tls): void;
  /** Takes no new connections, lets open requests end for at most so long, then cuts what is left. Repeating it is harmless. */
  close(graceMs: number): Promise<void>;
}

/** Longer than a load balancer keeps an idle connection, so that it is never we who close one that is just being used. */
const KEEP_ALIVE = 65_000;

/** Listens, or rejects with Node's own error (`code: 'EADDRINUSE'` for a taken port). */
export async function serve({ fetch, port, host, tls, stalled, traces }: ServeOptions): Promise<Served> {
  // Behind an ingress nobody speaks TLS here: a cold start does without it.
  const https = tls === undefined ? undefined : await import('node:https');
  const server = createAdaptorServer({
    fetch: (request, connection) => {
      // HTTP/2 is the third thing that they can be, and is not spoken here.
      const [incoming, outgoing] = [connection.incoming as IncomingMessage, connection.outgoing as ServerResponse];
      const handle = () => fetch(request, lend(incoming, outgoing));
      return traces === undefined ? handle() : traces.request(incoming, outgoing, handle);
    },
    ...(https === undefined || tls === undefined
      ? { createServer }
      : { createServer: https.createServer, serverOptions: tls }),
  }) as Server; // Nor is that asked for.
  server.keepAliveTimeout = KEEP_ALIVE;
  cutStalled(server, stalled);
  const sockets = socketsOf(server, https === undefined ? 'connection' : 'secureConnection');
  await listen(server, port, host);
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : port;
  let closing: Promise<void> | undefined;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    port: taken,
    renew: (next) => {
      if (https !== undefined && server instanceof https.Server) server.setSecureContext(next);
    },
    close: (graceMs) => {
      closing ??= close(server, sockets, graceMs);
      return closing;
    },
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function socketsOf(server: Server, opened: 'connection' | 'secureConnection'): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on(opened, (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return sockets;
}

function close(server: Server, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  // A connection that is idle, or becomes so, has nobody to disappoint. To Node one is whose reply was ended, taken or not.
  const closeIdle = (): void => {
    if (![...sockets].some(({ writableLength }) => writableLength > 0)) server.closeIdleConnections();
  };
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    const sweep = setInterval(closeIdle, 100);
    // An HTTP server's own would close what is idle to Node.
    NetServer.prototype.close.call(server, () => {
      clearTimeout(cut);
      clearInterval(sweep);
      resolve();
    });
    closeIdle();
  });
}

// A handler as an HTTP server in Node, which lets open requests end before it stops.
import { createServer, type RequestListener, type Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { createOwnedTurn, createTurn } from '#adapters/process/event-loop-batch.ts';
import type { HttpHandler } from '#core/ports/http-exchange.ts';
import { type Connections, createConnections } from './connections.ts';
import { NodeExchange } from './http-exchange.ts';
import { IncomingRequest } from './incoming-request.ts';
import { type ListenOptions, listen } from './listen.ts';
import type { Traces } from './otel.ts';
import { cutStalled } from './stalled-clients.ts';

interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

export type Handler = FetchHandler | { readonly handle: HttpHandler };

export interface ServeOptions extends ListenOptions {
  readonly tls?: Tls;
  /**
   * Connections that are open at the same time: for each further one, one without a request is closed. Absent: no
   * bound.
   */
  readonly maxConnections?: number | undefined;
  /** At that number a new connection closes the oldest, also while its request is under way. */
  readonly closesOldest?: true;
  /** Milliseconds that a client has for the head of a request, from the moment at which it connects. */
  readonly headWithin?: number | undefined;
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

export type RunningServer = Awaited<ReturnType<typeof serve>>;

/**
 * Longer than a load balancer keeps an idle connection, so that the server never closes one that is just being used.
 */
const KEEP_ALIVE = 65_000;
/**
 * Clients send the head when they connect. A process that was starved of CPU for some seconds must not take its own
 * delay for theirs.
 */
const HEAD_WITHIN = 10_000;

/** Listens, or rejects with Node's own error (`code: 'EADDRINUSE'` for a taken port). */
export async function serve(options: Handler & ServeOptions) {
  const { tls, maxConnections, closesOldest, headWithin = HEAD_WITHIN, stalled, traces } = options;
  const answer = 'fetch' in options ? await fetchListener(options) : exchangeListener(options.handle);
  const traced: RequestListener =
    traces === undefined
      ? answer
      : (incoming, ...out) => traces.request(incoming, ...out, () => answer(incoming, ...out));
  const turn = createTurn();
  let closing: Promise<void> | undefined;
  const listener: RequestListener = (incoming, outgoing) => {
    const begin = () => {
      if (closing !== undefined) outgoing.shouldKeepAlive = false;
      // The bodies of most requests arrive in the same turn.
      turn(() => traced(incoming, outgoing));
    };
    // A reply gets the socket when the client has taken all replies before it. Until then it is not created.
    if (outgoing.socket === null) outgoing.once('socket', begin);
    else begin();
  };
  // TLS is loaded only with a certificate, because behind an ingress a cold start does not need the module.
  const https = tls === undefined ? undefined : await import('node:https');
  const connections = createConnections(maxConnections, closesOldest);
  const limits = {
    IncomingMessage: IncomingRequest,
    ServerResponse: connections.ServerResponse,
    headersTimeout: headWithin,
    connectionsCheckingInterval: headWithin / 10,
    handshakeTimeout: headWithin,
  };
  const server: Server =
    https === undefined || tls === undefined
      ? createServer(limits, listener)
      : https.createServer({ ...limits, ...tls }, listener);
  server.keepAliveTimeout = KEEP_ALIVE;
  cutStalled(server, stalled);
  connections.watch(server);
  const { open } = connections;
  const { at, port, stop } = await listen(server, options);
  return {
    /** The address with the port that was really taken, without a slash at its end. */
    url: `${tls === undefined ? 'http' : 'https'}://${at}`,
    port,
    /**
     * Shows this certificate on every connection from now on; does nothing without TLS. Throws for an invalid
     * certificate.
     */
    renew: (next: Tls) => {
      if (https !== undefined && server instanceof https.Server) server.setSecureContext(next);
    },
    /**
     * Continues serving for `drainMs`, during which each reply asks its client to close the connection. Then the server
     * takes no new connections, lets open requests end for `graceMs` at most, and closes the rest. A second call waits
     * for the first.
     */
    close: (graceMs: number, drainMs = 0) => {
      closing ??= drain(open, drainMs).then(() => close(server, { open, stop, graceMs }));
      return closing;
    },
  };
}

/** The listener for a handler of web requests; a process without one does not load its library. */
async function fetchListener(handler: FetchHandler): Promise<RequestListener> {
  const { getRequestListener } = await import('@hono/node-server');
  const listener = getRequestListener((request) => handler.fetch(request));
  return (incoming, outgoing) => void listener(incoming, outgoing);
}

function exchangeListener(handle: HttpHandler): RequestListener {
  const long = createOwnedTurn();
  return (incoming, outgoing) => void handle(new NodeExchange(incoming, outgoing, long));
}

/** A connection that is closed while its client sends a request loses that request: clients close theirs first. */
async function drain(connections: Connections['open'], drainMs: number): Promise<void> {
  const end = performance.now() + drainMs;
  while (connections.size > 0 && performance.now() < end) await pause(Math.min(50, drainMs));
  // A process that was starved reads requests that have arrived meanwhile.
  if (drainMs > 0) await new Promise(setImmediate);
}

interface Stop {
  readonly open: Connections['open'];
  readonly stop: () => Promise<unknown>;
  readonly graceMs: number;
}

async function close(server: Server, { open, stop, graceMs }: Stop): Promise<void> {
  // Idle connections can be closed immediately. Node calls one idle whose reply was ended, whether its client took it
  // or not.
  const closeIdle = (): void => {
    if (![...open].some(({ socket }) => socket.writableLength > 0)) server.closeIdleConnections();
  };
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  const resync = setInterval(closeIdle, 100);
  const stopped = stop();
  closeIdle();
  await stopped;
  clearTimeout(cut);
  clearInterval(resync);
}

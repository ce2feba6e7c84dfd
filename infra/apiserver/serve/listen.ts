// Listening on 127.0.0.1, and stopping without leaving a client hanging.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ApiError, badRequest, internalError } from '../api-error.ts';
import { respond, type ServeContext } from './respond.ts';
import { streamEvents, writeResponse } from './write-response.ts';

export type Listener = Awaited<ReturnType<typeof listen>>;

export type Tls = { readonly key: string; readonly cert: string };

/** Listens on 127.0.0.1 over HTTPS. Throws one sentence when the port is taken. */
export async function listen(serving: ServeContext, { port, tls }: { port: number; tls: Tls }) {
  const stopping = new AbortController();
  const server = createServer({ ...tls, ALPNProtocols: ['http/1.1'] }, (message, response) => {
    void serve(serving, { message, response, stopping: stopping.signal });
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 90_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = cause.code === 'EADDRINUSE' ? `port ${port} is taken` : cause.message;
      reject(new Error(`the API server cannot listen on 127.0.0.1: ${why}`, { cause }));
    });
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      stopping.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timeout = setTimeout(() => server.closeAllConnections(), 2_000);
      await closed;
      clearTimeout(timeout);
    },
  };
}

type Exchange = {
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  readonly stopping: AbortSignal;
};

async function serve(serving: ServeContext, { message, response, stopping }: Exchange): Promise<void> {
  const left = new AbortController();
  response.once('close', () => left.abort());
  const warnings: string[] = [];
  const warn = (text: string) => void warnings.push(text.replaceAll(/[\r\n]+/g, ' '));
  const answer = await respond(serving, message, { warn, signal: left.signal }).catch((error: Error) => {
    serving.deps.log.error('API server: a request failed', { method: message.method, path: message.url, error });
    return unexpected(error);
  });
  if (response.destroyed) return;
  if ('watch' in answer) streamEvents(response, answer, AbortSignal.any([left.signal, stopping]));
  else writeResponse(response, answer, warnings);
}

/**
 * The error as clients see it; the log has the rest. A stack overflow is the request's fault: nothing else here is that
 * deep.
 */
function unexpected(error: Error): ApiError {
  const { message, cause } = error;
  if (error instanceof RangeError) return badRequest('the object is nested too deeply, or contains itself');
  return internalError(cause instanceof Error ? `${message}: ${cause.message}` : message);
}

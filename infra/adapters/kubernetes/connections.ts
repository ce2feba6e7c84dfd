// How are connections to one API server kept, and requests sent over them? Node's own client: nothing else has to be loaded at a cold start.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type Connections, MOST_CONNECTIONS, type Server } from './server.ts';
import type { KubeResponse } from './transport.ts';

/** Milliseconds after which an idle connection is asked whether it is still there. */
const PROBE_AFTER = 30_000;

export async function openConnections(server: Server): Promise<Connections> {
  // Proxies are rare, and what speaks to them takes longer to load than everything else here.
  if (server.proxy !== undefined) return (await import('./proxied.ts')).openProxied(server, server.proxy);
  const client = server.address.startsWith('http:') ? await import('node:http') : await import('node:https');
  // Times are the caller's (a watch has none): its signal ends a call.
  const limits = { keepAlive: true, keepAliveMsecs: PROBE_AFTER, maxSockets: MOST_CONNECTIONS };
  const agent = new client.Agent({ ...limits, ...server.tls });
  return {
    send: ({ method, path, headers: given, body, signal }) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        // Said here, because Node says no length of what a DELETE carries, and a server would take it for the next request.
        const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
        const headers = { ...given, ...length };
        const sent = client.request(`${server.address}${path}`, { method, headers, agent });
        // Its last words may come after the response: then whoever reads that is told.
        sent.on('error', reject);
        sent.once('response', (response) => resolve(toResponse(response)));
        endWith(signal, sent);
        sent.end(body);
      }),
    retire: () => {
      agent.maxFreeSockets = 0;
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    },
    destroy: async () => agent.destroy(),
  };
}

/** Ends request and response when the signal does, and lets go of the signal when they have ended. */
function endWith(signal: AbortSignal, sent: ClientRequest): void {
  const end = () => sent.destroy(signal.reason);
  signal.addEventListener('abort', end);
  sent.once('close', () => signal.removeEventListener('abort', end));
}

function toResponse(response: IncomingMessage): KubeResponse {
  return {
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'],
    text: async () => {
      const parts: Buffer[] = [];
      for await (const part of response) parts.push(part);
      return Buffer.concat(parts).toString();
    },
    stream: () => response,
  };
}

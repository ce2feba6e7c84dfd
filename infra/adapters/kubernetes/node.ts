// An API server that is reached by a Node process, with a kubeconfig or as a service account in the cluster. It uses
// Node's own client, because loading undici takes as long as the rest of a cold start.
import { readFile } from 'node:fs/promises';
import type { Agent, IncomingMessage, RequestOptions } from 'node:http';
import { fromUtf8, Pieces } from '#core/json/bytes.ts';
import {
  type KubeRequest,
  type KubeResponse,
  type KubeTransport,
  MAX_RESPONSE,
  ResponseTooLarge,
  USER_AGENT,
} from './cluster.ts';

export interface NodeTransport {
  readonly request: KubeTransport;
  readonly close: () => Promise<void>;
}

/** Address and credentials. They are read again after a while, because tokens and certificates rotate. */
interface Access {
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: Readonly<Record<string, string | Buffer | boolean | undefined>>;
}

/** The time for which a token, a certificate or the output of a credential plugin is used before it is read again. */
const FRESH_FOR = 10_000;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Milliseconds after which an idle connection is probed. */
const PROBE_AFTER = 30_000;
const MAX_CONNECTIONS = 32;
/**
 * A transport with the current context of a kubeconfig file. All authentication methods of `kubectl` work. A
 * `proxy-url` is refused. `more`: headers of every request, for impersonation if the kubeconfig allows it (`kubectl
 * --as`).
 */
export async function createKubeconfigTransport(
  file: string,
  more: Readonly<Record<string, string>> = {},
): Promise<NodeTransport> {
  // Loaded only here: the library takes 0.3 s and 80 MB, and a service account does not need it.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(file);
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error(`${file} has no cluster in its current context`);
  if (cluster.proxyUrl)
    throw new Error(`${file}: proxy-url is not supported: give a file without it, for the address itself`);
  // The library accepts plain HTTP only with `skipTLSVerify`. There are no certificates then.
  if (cluster.server.startsWith('http:')) Object.assign(cluster, { skipTLSVerify: true });

  return createTransport(async () => {
    const options: Parameters<typeof config.applyToHTTPSOptions>[0] = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, passphrase, rejectUnauthorized, servername, auth, headers } = options;
    const basic = typeof auth === 'string' ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {};
    return {
      address: cluster.server,
      headers: { ...basic, ...(headers as Record<string, string> | undefined), ...more },
      tls: { ca, cert, key, passphrase, rejectUnauthorized, servername } as Access['tls'],
    };
  });
}

/**
 * A transport as the service account of the Pod. `address` is
 * `https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT`.
 */
export function createServiceAccountTransport({
  address,
  folder = SERVICE_ACCOUNT,
}: {
  readonly address: string;
  readonly folder?: string;
}): NodeTransport {
  return createTransport(async () => ({
    address,
    headers: { authorization: `Bearer ${(await readFile(`${folder}/token`, 'utf8')).trim()}` },
    tls: { ca: await readFile(`${folder}/ca.crt`) },
  }));
}

/** Connections that are kept while the certificates are the same, so that calls share TLS handshakes. */
function createTransport(read: () => Promise<Access>): NodeTransport {
  let access: { readonly opened: ReturnType<typeof open>; readonly readAt: number } | undefined;
  let kept: (Client & { readonly key: string }) | undefined;

  async function open() {
    const { address, headers, tls } = await read();
    const key = JSON.stringify([Object.entries(tls).map(([name, value]) => [name, String(value)]), address]);
    if (kept?.key !== key) {
      if (kept !== undefined) retire(kept.agent);
      kept = { key, ...(await createClient(address, tls)) };
    }
    return { headers, send: kept.send };
  }

  const attempt: KubeTransport = async (request) => {
    if (access === undefined || Date.now() - access.readAt > FRESH_FOR) {
      access = { opened: open(), readAt: Date.now() };
      access.opened.catch(() => {
        access = undefined;
      });
    }
    const { headers, send } = await access.opened;
    return send(request, headers);
  };

  return {
    request: async (request) => {
      const response = await attempt(request);
      if (response.status !== 401) return response;
      // The token may have been rotated within the last seconds: it is read again, once.
      access = undefined;
      return attempt(request);
    },
    close: async () => {
      await access?.opened.catch(() => undefined);
      kept?.agent.destroy();
      kept = undefined;
    },
  };
}

type Client = Awaited<ReturnType<typeof createClient>>;

/** TLS is loaded at the first call that needs it, so that a start does not wait for it. */
async function createClient(address: string, tls: Access['tls']) {
  const base = address.replace(/(?<!\/)\/+$/, '');
  const { Agent, request } = await (base.startsWith('http:') ? import('node:http') : import('node:https'));
  const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
  const agent = new Agent({ keepAlive: true, keepAliveMsecs: PROBE_AFTER, maxSockets: MAX_CONNECTIONS, ...given });
  const send = (
    { method, path, accept = 'application/json', contentType, body, signal }: KubeRequest,
    identity: Access['headers'],
  ) =>
    new Promise<KubeResponse>((resolve, reject) => {
      const headers: RequestOptions['headers'] = {
        accept,
        'user-agent': USER_AGENT,
        ...identity,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
        // Node sends no length for the body of a DELETE. Without it, a server would read the body as the next request.
        ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
      };
      const sent = request(`${base}${path}`, { method, headers, agent, signal });
      sent.on('error', reject);
      sent.once('response', (response) => read(response).then(resolve, reject));
      sent.end(body);
    });
  return { agent, send };
}

async function read(response: IncomingMessage): Promise<KubeResponse> {
  const pieces = new Pieces();
  for await (const piece of response) {
    pieces.add(piece);
    // The connection ends with the loop: the rest is not received.
    if (pieces.length > MAX_RESPONSE) throw new ResponseTooLarge();
  }
  const { statusCode = 0, headers } = response;
  return { status: statusCode, retryAfter: headers['retry-after'], text: fromUtf8(pieces.take()) };
}

/** Lets open calls end, and keeps no connection after them. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

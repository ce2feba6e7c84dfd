// How does a Node process reach an API server: with a kubeconfig, or as a service account in the cluster?
import { readFile } from 'node:fs/promises';
import { openConnections } from './connections.ts';
import type { Connections } from './server.ts';
import { type KubeTransport, USER_AGENT } from './transport.ts';

export interface NodeTransport {
  readonly request: KubeTransport;
  readonly close: () => Promise<void>;
}

/** Where and as whom; read anew after a while, because tokens and certificates rotate. */
interface Access {
  readonly address: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: Readonly<Record<string, string | Buffer | boolean | undefined>>;
  readonly proxy?: string | undefined;
}

/** How long what was read of a token file, a certificate or a credential plugin is used without looking again. */
const FRESH_FOR = 10_000;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Whom to act as, where the kubeconfig may (`kubectl --as`). */
export interface Impersonated {
  readonly user: string;
  /** Absent: the API server knows the groups, as it does of a service account. */
  readonly group?: string;
}

/** With the current context of a kubeconfig file; every way to authenticate that `kubectl` knows. */
export async function createKubeconfigTransport(file: string, as?: Impersonated): Promise<NodeTransport> {
  // Loaded only here: the library takes 0.3 s and 80 MB, and a service account does not need it.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromFile(file);
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error(`${file} has no cluster in its current context`);
  // The library refuses plain HTTP unless told not to look at certificates, of which there are none.
  if (cluster.server.startsWith('http:')) Object.assign(cluster, { skipTLSVerify: true });

  return createTransport(async () => {
    const options: Parameters<typeof config.applyToHTTPSOptions>[0] = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, passphrase, rejectUnauthorized, servername, auth, headers } = options;
    const groups = as?.group === undefined ? {} : { 'impersonate-group': as.group };
    const acting = as === undefined ? {} : { 'impersonate-user': as.user, ...groups };
    const basic = typeof auth === 'string' ? { authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {};
    return {
      address: cluster.server,
      headers: { ...basic, ...(headers as Record<string, string> | undefined), ...acting },
      tls: { ca, cert, key, passphrase, rejectUnauthorized, servername } as Access['tls'],
      proxy: cluster.proxyUrl,
    };
  });
}

/** As the service account of the pod. `address` is `https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT`. */
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

/** The same connections as long as certificates stay the same, so that TLS is not begun anew for each call. */
function createTransport(read: () => Promise<Access>): NodeTransport {
  let access: { readonly value: Promise<Access>; readonly readAt: number } | undefined;
  let pool: { readonly key: string; readonly connections: Promise<Connections> } | undefined;

  function current(): Promise<Access> {
    if (access === undefined || Date.now() - access.readAt > FRESH_FOR) {
      const value = read();
      access = { value, readAt: Date.now() };
      value.catch(() => {
        access = undefined;
      });
    }
    return access.value;
  }

  function connectionsOf({ address, tls, proxy }: Access): Promise<Connections> {
    const key = JSON.stringify([Object.entries(tls).map(([name, value]) => [name, String(value)]), address, proxy]);
    if (pool?.key === key) return pool.connections;
    pool?.connections.then((old) => old.retire()).catch(() => {});
    const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
    const connections = openConnections({ address: address.replace(/\/+$/, ''), tls: given, proxy });
    pool = { key, connections };
    return connections;
  }

  const attempt: KubeTransport = async ({ method, path, accept = 'application/json', contentType, body, signal }) => {
    const now = await current();
    const { send } = await connectionsOf(now);
    const headers = {
      accept,
      'user-agent': USER_AGENT,
      ...now.headers,
      ...(contentType === undefined ? {} : { 'content-type': contentType }),
    };
    return send({ method, path, headers, body, signal });
  };

  return {
    request: async (request) => {
      const response = await attempt(request);
      if (response.status !== 401) return response;
      // The token may have been rotated within the last seconds: look again, once.
      await response.text();
      access = undefined;
      return attempt(request);
    },
    close: async () => {
      const open = await pool?.connections.catch(() => undefined);
      pool = undefined;
      await open?.destroy();
    },
  };
}

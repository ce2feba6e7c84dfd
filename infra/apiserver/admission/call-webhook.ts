// Calls of webhooks over HTTPS.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { collect } from '../request/body.ts';
import { quote } from '../schema/go-format.ts';
import type { Store } from '../store/store.ts';
import type { Webhook } from './webhooks.ts';

/** The decoded body of a 200, or why there is none, in the words of the real server. */
export type CallResult = { readonly body: unknown } | { readonly failed: string };

/** Calls a webhook; gives up when the signal aborts, or after so many milliseconds. */
export type Call = (
  webhook: Webhook,
  review: object,
  until: { signal: AbortSignal; milliseconds: number },
) => Promise<CallResult>;

const maxResponseBytes = 7 * 1024 * 1024;

/** POSTs reviews over HTTPS with the CA of the configuration; connections are kept, one pool per CA. */
export function createCall(store: Pick<Store, 'get'>): { call: Call; close(): void } {
  const agents = new Map<string, Agent>();

  function agentFor(ca: string | undefined): Agent {
    const key = ca ?? '';
    const agent = agents.get(key) ?? new Agent({ keepAlive: true, ...(ca && { ca: Buffer.from(ca, 'base64') }) });
    agents.set(key, agent);
    return agent;
  }

  return {
    async call({ clientConfig, timeoutSeconds }, review, { signal, milliseconds }) {
      const target = targetOf(clientConfig, store);
      if (typeof target === 'string') return { failed: target };
      const { to: url, connect } = target;
      url.searchParams.set('timeout', `${timeoutSeconds}s`);
      const aborted = AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]);
      return post(url, { agent: agentFor(clientConfig.caBundle), ...connect }, { review, signal: aborted });
    },
    close() {
      for (const agent of agents.values()) agent.destroy();
    },
  };
}

/** A Service has no network behind it here; only one of type ExternalName names a host to call. */
function targetOf({ url, service }: Webhook['clientConfig'], store: Pick<Store, 'get'>) {
  if (url !== undefined) return { to: new URL(url) };
  if (service === undefined) return 'the webhook has neither url nor service';
  const { namespace, name, port = 443, path = '/' } = service;
  const spec = store.get({ resource: '/services', namespace, name })?.spec as
    | Readonly<Record<string, unknown>>
    | undefined;
  if (spec?.type !== 'ExternalName' || typeof spec.externalName !== 'string')
    return `this API server has no Service network: use clientConfig.url, or make ${namespace}/${name} a Service of type ExternalName`;
  const to = new URL(`https://${name}.${namespace}.svc:${port}${path}`);
  return { to, connect: { hostname: spec.externalName, servername: to.hostname } };
}

async function post(
  url: URL,
  options: { readonly agent: Agent },
  { review, signal }: { review: object; signal: AbortSignal },
): Promise<CallResult> {
  const body = Buffer.from(JSON.stringify(review));
  const headers = {
    host: url.host,
    'content-type': 'application/json',
    accept: 'application/json, */*',
    'content-length': body.length,
    'user-agent': 'kube-apiserver-admission',
  };
  const sent = request(url, { ...options, method: 'POST', signal, headers });
  try {
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    sent.on('error', () => undefined); // from here on, reading the response fails instead
    const content = await collect(response, maxResponseBytes);
    if (content === undefined) throw new Error('the response is larger than 7 MiB');
    return readBody(response, content.toString('utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A kept connection that the webhook closed meanwhile: the review never arrived, so it is sent again on a new one.
    if (sent.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE')) return post(url, options, { review, signal });
    const why = signal.aborted ? 'context deadline exceeded' : goMessage(error as Error);
    return { failed: `Post ${quote(url.href)}: ${why}` };
  }
}

/** The real server quotes a webhook's error body only where that is text. */
function readBody({ statusCode: status = 0, headers }: IncomingMessage, text: string): CallResult {
  const reply = headers['content-type']?.startsWith('text/') ? text.trim().slice(0, 2048) : 'unknown';
  if (status === 404) return { failed: 'the server could not find the requested resource' };
  if (status >= 500)
    return { failed: `an error on the server (${quote(reply)}) has prevented the request from succeeding` };
  if (status < 200 || status > 299) {
    return { failed: `the server responded with the status code ${status} but did not return more information` };
  }
  try {
    return { body: JSON.parse(text) };
  } catch (error) {
    return { failed: `couldn't get version/kind; json parse error: ${(error as Error).message}` };
  }
}

function goMessage(error: Error & { code?: string; address?: string; port?: number; hostname?: string }): string {
  if (error.code === 'ECONNREFUSED') return `dial tcp ${error.address}:${error.port}: connect: connection refused`;
  if (error.code === 'ENOTFOUND') return `dial tcp: lookup ${error.hostname}: no such host`;
  if (/certificate|CERT|SIGNATURE|ALTNAME/.test(`${error.code} ${error.message}`)) {
    return `tls: failed to verify certificate: x509: ${error.message}`;
  }
  return error.message;
}

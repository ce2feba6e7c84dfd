// An API server that is reached by its address and a bearer token, with `fetch` only, as in a Worker.
import { fromUtf8, readBytes } from '#core/json/bytes.ts';
import { type KubeTransport, MAX_RESPONSE, ResponseTooLarge, USER_AGENT } from './cluster.ts';

export interface FetchTransportDependencies {
  /** Address of the API server, `https://…`; its certificate must be one that the platform trusts. */
  readonly address: string;
  readonly token: string;
  readonly fetch: typeof globalThis.fetch;
}

export function createFetchTransport({ address, token, fetch }: FetchTransportDependencies): KubeTransport {
  const base = address.replace(/(?<!\/)\/+$/, '');
  return async ({ method, path, accept = 'application/json', contentType, body, signal }) => {
    const response = await fetch(`${base}${path}`, {
      method,
      signal,
      // Redirects are not followed: Workers do not support 'error', and the caller refuses every reply but 2xx.
      redirect: 'manual',
      headers: {
        accept,
        'user-agent': USER_AGENT,
        authorization: `Bearer ${token.trim()}`,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
      },
      ...(body === undefined ? {} : { body }),
    });
    const retryAfter = response.headers.get('retry-after') ?? undefined;
    return { status: response.status, retryAfter, text: await readText(response) };
  };
}

async function readText({ body }: Response): Promise<string> {
  const bytes = await readBytes(body, MAX_RESPONSE);
  if (bytes === undefined) throw new ResponseTooLarge();
  return fromUtf8(bytes);
}

// How does a Worker, or anything that has only fetch, reach an API server? By its address and a bearer token.
import { type KubeTransport, USER_AGENT } from './transport.ts';

export interface FetchTransportDeps {
  /** Address of the API server, `https://…`; its certificate must be one that the platform trusts. */
  readonly address: string;
  /** The token, or how to get the one that is valid now. */
  readonly token: string | (() => string | Promise<string>);
  readonly fetch: typeof globalThis.fetch;
}

export function createFetchTransport({ address, token, fetch }: FetchTransportDeps): KubeTransport {
  const base = address.replace(/\/+$/, '');
  return async ({ method, path, accept = 'application/json', contentType, body, signal }) => {
    const bearer = typeof token === 'string' ? token : await token();
    const response = await fetch(`${base}${path}`, {
      method,
      signal,
      // Followed by nobody: Workers know no 'error', and what is no 2xx is refused by who asked.
      redirect: 'manual',
      headers: {
        accept,
        'user-agent': USER_AGENT,
        authorization: `Bearer ${bearer.trim()}`,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
      },
      ...(body === undefined ? {} : { body }),
    });
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after') ?? undefined,
      text: () => response.text(),
      stream: () => bytes(response.body),
    };
  };
}

/** Not every runtime can iterate over a stream of a response. */
async function* bytes(body: ReadableStream<Uint8Array> | null): AsyncIterable<Uint8Array> {
  const reader = body?.getReader();
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) yield part.value;
}

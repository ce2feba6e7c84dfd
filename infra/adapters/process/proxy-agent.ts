// Connections through a proxy.
import { type Dispatcher, fetch, Pool, ProxyAgent } from 'undici';

/**
 * Opens connections through a proxy, all by CONNECT: the proxy sees no content, and what it refuses has not reached the
 * target. `connect`: the maximum milliseconds of a connection, and of the proxy's answer to CONNECT.
 */
export function openProxy(proxy: string, connect: number): ProxyAgent {
  return new ProxyAgent({
    uri: proxy,
    proxyTunnel: true,
    allowH2: false,
    keepAliveTimeout: 30_000,
    connectTimeout: connect,
    clientFactory: (origin, options) => new Pool(origin, { ...options, headersTimeout: connect }),
  });
}

/** `fetch` of undici, which takes its own dispatchers: those of another version may not fit the platform's. */
export const fetchThrough = (input: string | URL, init: object, dispatcher: Dispatcher): Promise<Response> =>
  fetch(input, { ...init, dispatcher }) as Promise<Response>;

// How is an API server reached through a proxy, as `proxy-url` of a kubeconfig asks?
import { ProxyAgent, request as send } from 'undici';
import { type Connections, MOST_CONNECTIONS, type Server } from './server.ts';

export function openProxied({ address, tls }: Server, proxy: string): Connections {
  const limits = { bodyTimeout: 0, headersTimeout: 0, connections: MOST_CONNECTIONS };
  const dispatcher = new ProxyAgent({ ...limits, uri: proxy, requestTls: tls });
  return {
    send: async ({ path, body, ...request }) => {
      const response = await send(`${address}${path}`, {
        ...request,
        dispatcher,
        ...(body === undefined ? {} : { body }),
      });
      const retryAfter = response.headers['retry-after'];
      return {
        status: response.statusCode,
        retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
        text: () => response.body.text(),
        stream: () => response.body,
      };
    },
    retire: () => {
      dispatcher.close().catch(() => {});
    },
    destroy: () => dispatcher.destroy(),
  };
}

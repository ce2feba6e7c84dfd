// A client that sends a body to the gateway without a server, and takes everything.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { KEY } from './instance.ts';

/** A client that sends this body with the key of the tests. `more`: what it does otherwise. */
export function exchangeOf(path: string, body: Uint8Array, more: Partial<HttpExchange> = {}): HttpExchange {
  const headers = new Map([
    ['authorization', `Bearer ${KEY}`],
    ['content-length', `${body.length}`],
  ]);
  return {
    method: 'POST',
    path,
    query: '',
    header: (name) => headers.get(name),
    readBody: async (accept) => accept(body.length) ?? body,
    stopReading: () => {},
    begin: () => {},
    flush: () => {},
    hasBegun: () => false,
    write: () => true,
    drained: async () => {},
    end: () => {},
    destroy: () => {},
    hasLeft: () => false,
    onLeave: () => {},
    ...more,
  };
}

// Bodies of requests, up to 32 MiB each, and of plain replies: no more of either concurrently than the process can keep.
import type { Failure } from '#core/failure.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { err, ok, type Result } from '#core/result.ts';

export const MAX_BODY = 32 * 1024 * 1024;
/** Bytes of all bodies that are kept at the same time: four of the largest. */
const MAX_KEPT = 4 * MAX_BODY;
/** A body up to this size is always read: only larger ones need free room. */
const SMALL = 64 * 1024;

const FAILURES = {
  'too large': { code: 'request_too_large', limit: MAX_BODY },
  'no room': { code: 'overloaded' },
  broken: { code: 'invalid_request', message: 'The request body ended before it was complete.' },
} as const satisfies Record<string, Failure>;

/** The body of one request. */
export type Body = ReturnType<Bodies['open']>;

export type Bodies = ReturnType<typeof createBodies>;

/** The bodies of one process, which share its room. `max`: bytes of one. */
export function createBodies(max = MAX_BODY) {
  let kept = 0;
  return { open };

  /** Opens a body. Its bytes take room until it is closed. */
  function open() {
    let length = 0;
    const refusal = (bytes: number) => {
      if (bytes > max) return 'too large';
      return bytes > SMALL && kept + bytes - length > MAX_KEPT ? 'no room' : undefined;
    };
    const accept = (bytes: number) => {
      const refused = refusal(length + bytes);
      length += bytes;
      kept += bytes;
      return refused;
    };
    return {
      /** Takes room for these bytes more, and says why there is none. */
      accept,
      read: async (client: HttpExchange): Promise<Result<Uint8Array, Failure>> => {
        // A body whose announced length is too large is not read at all.
        const refused = refusal(Number(client.header('content-length') ?? 0));
        const body = refused ?? (await client.readBody(accept));
        return typeof body === 'string' ? err(FAILURES[body]) : ok(body);
      },
      close: () => {
        kept -= length;
        length = 0;
      },
    };
  }
}

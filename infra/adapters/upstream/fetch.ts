// The upstream of a Worker: `fetch`, with timeouts, which `fetch` does not have.
import type { Timer } from '#core/ports/platform.ts';
import { type Upstream, UpstreamError } from '#core/ports/upstream.ts';
import { toAbortSignal } from './abort-signal.ts';
import { toBytes } from './body.ts';
import { withSigning } from './signing.ts';

interface Dependencies {
  readonly fetch: typeof globalThis.fetch;
  readonly timer: Timer;
  readonly now?: () => number;
}

export function createFetchUpstream({ fetch, timer, now = Date.now }: Dependencies): Upstream {
  const send: Upstream = async ({ url, query = '', headers, body, timeouts, signal }) => {
    // Up to this line certainly nothing was sent. After it, that is unknown.
    if (signal.aborted) throw new UpstreamError('unsent', 'the request was aborted');
    const timeoutController = new AbortController();
    let cancel = () => {};
    const startTimer = (millis: number) => {
      cancel();
      cancel = timer(millis, () => timeoutController.abort());
    };
    const toUpstreamError = (error: unknown) => {
      const kind = timeoutController.signal.aborted ? 'timeout' : isConnectFailure(error) ? 'refused' : 'broken';
      return new UpstreamError(kind, `the upstream failed: ${kind}`, { cause: error });
    };
    const stop = AbortSignal.any([toAbortSignal(signal), timeoutController.signal]);
    const request = toRequest(url + query, {
      method: 'POST',
      headers,
      body: toBytes(body),
      redirect: 'manual',
      signal: stop,
    });
    try {
      startTimer(timeouts.connect + timeouts.firstByte);
      const response = await fetch(request);
      return { status: response.status, headers: Object.fromEntries(response.headers), body: read(response) };
    } catch (error) {
      throw toUpstreamError(error);
    } finally {
      cancel();
    }

    async function* read(response: Response): AsyncGenerator<Uint8Array> {
      const reader = response.body?.getReader();
      if (reader === undefined) return;
      try {
        while (true) {
          startTimer(timeouts.idle);
          const { done, value } = await reader.read();
          if (done) return;
          yield value;
        }
      } catch (error) {
        throw toUpstreamError(error);
      } finally {
        cancel();
        // Before the end of the body, this stops the provider; after it, it does nothing.
        void reader.cancel().catch(() => {});
      }
    }
  };
  return withSigning(send, { fetch, now });
}

/** The request. Throws `refused` for an address or a header that cannot be sent. */
function toRequest(url: string, init: RequestInit): Request {
  try {
    return new Request(url, init);
  } catch (cause) {
    throw new UpstreamError('refused', 'the request has an address or a header that cannot be sent', { cause });
  }
}

const CONNECT_FAILURE =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_(TLS|SSL)_.*|UND_ERR_CONNECT.*)$|CERT|VERIFY/;

/**
 * Whether the error shows that there was no connection. Workers do not show that: the provider may have read a failed
 * call (port: `UpstreamErrorKind`).
 */
function isConnectFailure(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } };
  return typeof cause?.code === 'string' && CONNECT_FAILURE.test(cause.code);
}

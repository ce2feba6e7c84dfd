// The upstream of a Worker: fetch, with the timeouts that fetch lacks.
import { type Upstream, UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';

export interface FetchUpstreamDeps {
  readonly fetch: typeof fetch;
  /** Calls back after `millis`; returns a function that cancels. */
  readonly timer: (millis: number, callback: () => void) => () => void;
}

export function createFetchUpstream({ fetch, timer }: FetchUpstreamDeps): Upstream {
  return async (request) => {
    // After this point it is unknown whether anything was sent.
    if (request.signal.aborted) throw new UpstreamBroke('unsent', 'the request was aborted');
    const watch = createWatch(request, timer);
    try {
      watch.startTimer(request.timeouts.connect + request.timeouts.firstByte);
      const response = await fetch(request.url, {
        method: 'POST',
        headers: request.headers,
        body: new Uint8Array(request.body),
        redirect: 'manual',
        signal: watch.signal,
      });
      return { status: response.status, headers: Object.fromEntries(response.headers), body: read(response, watch) };
    } catch (error) {
      throw watch.broke(error, 'refused');
    } finally {
      watch.stopTimer();
    }

    async function* read(response: Response, running: Watch): AsyncGenerator<Uint8Array> {
      const reader = response.body?.getReader();
      if (reader === undefined) return;
      try {
        while (true) {
          running.startTimer(request.timeouts.idle);
          const { done, value } = await reader.read();
          if (done) return;
          yield value;
        }
      } catch (error) {
        throw running.broke(error, 'broken');
      } finally {
        running.close();
        // Harmless after the end; before it, this stops the provider.
        void reader.cancel().catch(() => {});
      }
    }
  };
}

interface Watch {
  readonly signal: AbortSignal;
  /** Aborts after `millis` unless it is restarted or stopped. */
  startTimer(millis: number): void;
  stopTimer(): void;
  close(): void;
  broke(error: unknown, how: 'refused' | 'broken'): UpstreamBroke;
}

function createWatch(request: UpstreamRequest, timer: FetchUpstreamDeps['timer']): Watch {
  const controller = new AbortController();
  let late = false;
  let cancel = () => {};
  const abort = () => controller.abort();
  request.signal.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    startTimer: (millis) => {
      cancel();
      cancel = timer(millis, () => {
        late = true;
        abort();
      });
    },
    stopTimer: () => cancel(),
    close: () => {
      cancel();
      request.signal.removeEventListener('abort', abort);
    },
    broke: (error, how) =>
      new UpstreamBroke(late ? 'timeout' : how, `the upstream failed: ${late ? 'timeout' : how}`, { cause: error }),
  };
}

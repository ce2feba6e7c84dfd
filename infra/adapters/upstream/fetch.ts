// How does a Worker speak to a provider? By fetch, with the time limits that it does not have itself.
import { type Upstream, UpstreamBroke, type UpstreamRequest } from '#core/ports/serving.ts';

export interface FetchUpstreamDeps {
  readonly fetch: typeof fetch;
  /** Calls back after `millis`; answers how to cancel. */
  readonly timer: (millis: number, callback: () => void) => () => void;
}

export function createFetchUpstream({ fetch, timer }: FetchUpstreamDeps): Upstream {
  return async (request) => {
    // Later than this nobody says whether something was sent.
    if (request.signal.aborted) throw new UpstreamBroke('unsent', 'nobody wants the answer any more');
    const watch = createWatch(request, timer);
    try {
      watch.within(request.timeouts.connect + request.timeouts.firstByte);
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
      watch.rest();
    }

    async function* read(response: Response, running: Watch): AsyncGenerator<Uint8Array> {
      const reader = response.body?.getReader();
      if (reader === undefined) return;
      try {
        while (true) {
          running.within(request.timeouts.idle);
          const { done, value } = await reader.read();
          if (done) return;
          yield value;
        }
      } catch (error) {
        throw running.broke(error, 'broken');
      } finally {
        running.close();
        // Harmless after the end; before it, this is what stops the provider.
        void reader.cancel().catch(() => {});
      }
    }
  };
}

interface Watch {
  readonly signal: AbortSignal;
  /** The next thing must happen within so long. */
  within(millis: number): void;
  rest(): void;
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
    within: (millis) => {
      cancel();
      cancel = timer(millis, () => {
        late = true;
        abort();
      });
    },
    rest: () => cancel(),
    close: () => {
      cancel();
      request.signal.removeEventListener('abort', abort);
    },
    broke: (error, how) =>
      new UpstreamBroke(late ? 'timeout' : how, `the upstream failed: ${late ? 'timeout' : how}`, { cause: error }),
  };
}

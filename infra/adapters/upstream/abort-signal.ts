// The web's signal of a stop, for `fetch`.
import type { StopSignal } from '#core/ports/upstream.ts';

export function toAbortSignal(stop: StopSignal): AbortSignal {
  if (stop instanceof AbortSignal) return stop;
  const controller = new AbortController();
  if (stop.aborted) controller.abort();
  else stop.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

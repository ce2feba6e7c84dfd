// The stop of one call of an upstream.
import type { StopSignal } from '#core/ports/upstream.ts';

/** A signal that its owner aborts, once. A class, because each call has one: methods are shared. */
export class CallStop implements StopSignal {
  aborted = false;
  readonly #listeners = new Set<() => void>();

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners.delete(listener);
  }

  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}

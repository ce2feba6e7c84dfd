// The early end of a request: its total time is over, or the client of a stream has left.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type EndReason = 'timeout' | 'client_left';

type Listener = (why: EndReason) => void;

/** The deadline of one request. A class, because each request has one: methods are shared. */
export class Deadline {
  /** The reason of the end; undefined while the request may continue. */
  ended: EndReason | undefined;
  readonly #timer: Timer;
  readonly #cancel: () => void;
  readonly #listeners = new Set<Listener>();

  /** `client`: given if the request ends when its client leaves. */
  constructor(timer: Timer, total: Millis, client: Pick<HttpExchange, 'hasLeft' | 'onLeave'> | undefined) {
    this.#timer = timer;
    this.ended = client?.hasLeft() === true ? 'client_left' : undefined;
    this.#cancel = timer(total, () => this.#end('timeout'));
    client?.onLeave(() => this.#end('client_left'));
  }

  /**
   * Calls the listener at the end, or immediately if the request has ended. The returned function removes the listener.
   */
  onEnd(listener: Listener): () => void {
    if (this.ended === undefined) this.#listeners.add(listener);
    else listener(this.ended);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves after this time, or when the request ends. */
  sleep(millis: Millis): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#timer(millis, () => {
        forget();
        resolve();
      });
      const forget = this.onEnd(() => {
        cancel();
        resolve();
      });
    });
  }

  /** Cancels the timer: the request is over. */
  close(): void {
    this.#listeners.clear();
    this.#cancel();
  }

  #end(why: EndReason): void {
    if (this.ended !== undefined) return;
    this.ended = why;
    this.#cancel();
    for (const listener of this.#listeners) listener(why);
  }
}

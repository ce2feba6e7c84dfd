// The end of a request before its reply has ended: its total time is over, or the client of a stream has left.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type EndReason = 'timeout' | 'left';

/** A class, because one is made for each request: methods are shared. */
export class Deadline {
  /** Why the request has ended; undefined while it may continue. */
  ended: EndReason | undefined;
  readonly #timer: Timer;
  readonly #cancel: () => void;
  #listener: ((why: EndReason) => void) | undefined;

  /** `client`: given where the request ends when the client leaves. */
  constructor(timer: Timer, total: Millis, client: Pick<HttpExchange, 'hasLeft' | 'onLeave'> | undefined) {
    this.#timer = timer;
    this.ended = client?.hasLeft() === true ? 'left' : undefined;
    this.#cancel = timer(total, () => this.#end('timeout'));
    client?.onLeave(() => this.#end('left'));
  }

  /** Calls this listener at the end, in place of an earlier one; immediately where the end has come. */
  onEnd(listener: (why: EndReason) => void): void {
    this.#listener = listener;
    if (this.ended !== undefined) listener(this.ended);
  }

  /** Resolves after this time, or when the request ends. */
  sleep(millis: Millis): Promise<void> {
    return new Promise((resolve) => {
      const wake = this.#timer(millis, resolve);
      this.onEnd(() => {
        wake();
        resolve();
      });
    });
  }

  /** No more timers: the request is over. */
  close(): void {
    this.#listener = undefined;
    this.#cancel();
  }

  #end(why: EndReason): void {
    if (this.ended !== undefined) return;
    this.ended = why;
    this.#cancel();
    this.#listener?.(why);
  }
}

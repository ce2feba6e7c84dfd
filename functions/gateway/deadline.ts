// When must an exchange end? When its time is up, or when the client of a stream has left.
import type { Connection } from '#core/ports/connection.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';
import type { StopSignal } from '#core/ports/serving.ts';

export type Ending = 'timeout' | 'left';

export interface Deadline {
  /** Of the attempt that is running: aborted by either end, by `abort`, and by the attempt's own limit. */
  readonly signal: StopSignal;
  /** Why the exchange has ended; undefined while it may go on. */
  readonly ended: Ending | undefined;
  /** From now on the listener is told of the end, and decides itself when to abort. At once when it has come. */
  onEnd(listener: (why: Ending) => void): void;
  /** Stops what the upstream is doing. */
  abort(): void;
  /** Begins an attempt, with a limit of its own if one is given. Call the answer when the attempt is over. */
  limitAttempt(millis: Millis | undefined): () => void;
  /** Resolves after so long, or when the exchange ends. */
  sleep(millis: Millis): Promise<void>;
  /** No more timers: the exchange is over. */
  close(): void;
}

/** Who waits for the answer. */
export type Client = Pick<Connection, 'hasLeft' | 'onLeave'>;

/** `client`: where it matters that it has left. */
export function openDeadline(timer: Timer, total: Millis, client: Client | undefined): Deadline {
  return new Running(timer, total, client);
}

const NOTHING = (): void => {};

/** A class, because one is made for each request: methods are shared. */
class Running implements Deadline {
  readonly #timer: Timer;
  readonly #cancelTotal: () => void;
  #ended: Ending | undefined;
  #attempt: Stop | undefined;
  #attempts = 0;
  #listener: ((why: Ending) => void) | undefined;
  #wake: () => void = NOTHING;
  #closed = false;

  constructor(timer: Timer, total: Millis, client: Client | undefined) {
    this.#timer = timer;
    this.#cancelTotal = timer(total, () => this.#end('timeout'));
    if (client === undefined) return;
    if (client.hasLeft()) this.#end('left');
    else client.onLeave(() => this.#end('left'));
  }

  get signal(): StopSignal {
    return this.#running();
  }

  get ended(): Ending | undefined {
    return this.#ended;
  }

  onEnd(listener: (why: Ending) => void): void {
    this.#listener = listener;
    if (this.#ended !== undefined) listener(this.#ended);
  }

  abort(): void {
    this.#running().stop();
  }

  limitAttempt(millis: Millis | undefined): () => void {
    // The first attempt takes what is there.
    if (this.#ended === undefined && this.#attempts > 0) this.#attempt = new Stop();
    this.#attempts += 1;
    if (millis === undefined) return NOTHING;
    const attempt = this.#running();
    return this.#timer(millis, () => attempt.stop());
  }

  sleep(millis: Millis): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#timer(millis, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  close(): void {
    this.#closed = true;
    this.#cancelTotal();
  }

  #end(why: Ending): void {
    if (this.#closed) return;
    this.#ended = why;
    this.close();
    this.#wake();
    if (this.#listener === undefined) this.abort();
    else this.#listener(why);
  }

  #running(): Stop {
    this.#attempt ??= new Stop();
    return this.#attempt;
  }
}

/** As much of an `AbortController` as an attempt needs: a real one costs two microseconds with its listener, and every request has one. */
class Stop implements StopSignal {
  aborted = false;
  #listeners: ReadonlyArray<() => void> = [];

  addEventListener(_: 'abort', listener: () => void): void {
    this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((other) => other !== listener);
  }

  stop(): void {
    if (this.aborted) return;
    this.aborted = true;
    for (const listener of this.#listeners) listener();
  }
}

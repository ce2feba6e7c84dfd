// When must an exchange end? When its time is up, or when the client of a stream has left.
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type Ending = 'timeout' | 'left';

export interface Deadline {
  /** Of the attempt that is running: aborted by either end, by `abort`, and by the attempt's own limit. */
  readonly signal: AbortSignal;
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

/** `leaves`: whether it matters that the client has left. */
export function openDeadline(timer: Timer, total: Millis, client: AbortSignal, leaves: boolean): Deadline {
  let ended: Ending | undefined;
  let running = new AbortController();
  let listener: (why: Ending) => void = () => running.abort();
  let wake: () => void = () => {};
  const cancelTotal = timer(total, () => end('timeout'));
  const onLeave = () => end('left');
  if (leaves) client.addEventListener('abort', onLeave, { once: true });
  if (leaves && client.aborted) end('left');

  function end(why: Ending): void {
    if (ended !== undefined) return;
    ended = why;
    close();
    wake();
    listener(why);
  }

  function close(): void {
    cancelTotal();
    if (leaves) client.removeEventListener('abort', onLeave);
  }

  return {
    get signal() {
      return running.signal;
    },
    get ended() {
      return ended;
    },
    onEnd: (told) => {
      listener = told;
      if (ended !== undefined) listener(ended);
    },
    abort: () => running.abort(),
    limitAttempt: (millis) => {
      if (ended === undefined) running = new AbortController();
      const attempt = running;
      return millis === undefined ? () => {} : timer(millis, () => attempt.abort());
    },
    sleep: (millis) =>
      new Promise((resolve) => {
        const cancel = timer(millis, resolve);
        wake = () => {
          cancel();
          resolve();
        };
      }),
    close,
  };
}

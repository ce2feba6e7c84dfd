// When must an exchange end? When its time is up, or when the client of a stream has left.
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

/** `client`: its signal where it matters that it has left. */
export function openDeadline(timer: Timer, total: Millis, client: AbortSignal | undefined): Deadline {
  let ended: Ending | undefined;
  let running = createStop();
  let listener: (why: Ending) => void = () => running.stop();
  let wake: () => void = NOTHING;
  let attempts = 0;
  const cancelTotal = timer(total, () => end('timeout'));
  const onLeave = client === undefined ? NOTHING : () => end('left');
  client?.addEventListener('abort', onLeave, { once: true });
  if (client?.aborted === true) end('left');

  function end(why: Ending): void {
    if (ended !== undefined) return;
    ended = why;
    close();
    wake();
    listener(why);
  }

  function close(): void {
    cancelTotal();
    client?.removeEventListener('abort', onLeave);
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
    abort: () => running.stop(),
    limitAttempt: (millis) => {
      // The first attempt takes what is there.
      if (ended === undefined && attempts > 0) running = createStop();
      attempts += 1;
      const attempt = running;
      return millis === undefined ? NOTHING : timer(millis, () => attempt.stop());
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

const NOTHING = (): void => {};

interface Stop {
  readonly signal: StopSignal;
  stop(): void;
}

/** As much of an `AbortController` as an attempt needs: a real one costs two microseconds with its listener, and every request has one. */
function createStop(): Stop {
  let listeners: ReadonlyArray<() => void> = [];
  const signal = {
    aborted: false,
    addEventListener: (_: 'abort', listener: () => void) => {
      listeners = [...listeners, listener];
    },
    removeEventListener: (_: 'abort', listener: () => void) => {
      listeners = listeners.filter((other) => other !== listener);
    },
  };
  const stop = () => {
    if (signal.aborted) return;
    signal.aborted = true;
    for (const listener of listeners) listener();
  };
  return { signal, stop };
}

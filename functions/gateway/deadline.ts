// The end of a request before its reply has ended: its total time is over, or the client of a stream has left.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type Ending = 'timeout' | 'left';

export interface Deadline {
  /** Why the request has ended; undefined while it may go on. */
  readonly ended: Ending | undefined;
  /** Tells this listener of the end, and none before it; immediately where the end has come. */
  onEnd(listener: (why: Ending) => void): void;
  /** Resolves after so long, or when the request ends. */
  sleep(millis: Millis): Promise<void>;
  /** No more timers: the request is over. */
  close(): void;
}

/** `client`: where it matters that the client has left. */
export function openDeadline(
  timer: Timer,
  total: Millis,
  client: Pick<HttpExchange, 'hasLeft' | 'onLeave'> | undefined,
): Deadline {
  let ended: Ending | undefined = client?.hasLeft() === true ? 'left' : undefined;
  let listener: (why: Ending) => void = () => {};
  const end = (why: Ending) => {
    if (ended !== undefined) return;
    ended = why;
    cancel();
    listener(why);
  };
  const cancel = timer(total, () => end('timeout'));
  client?.onLeave(() => end('left'));
  const onEnd = (next: (why: Ending) => void) => {
    listener = next;
    if (ended !== undefined) listener(ended);
  };
  return {
    get ended() {
      return ended;
    },
    onEnd,
    sleep: (millis) =>
      new Promise((resolve) => {
        const wake = timer(millis, resolve);
        onEnd(() => {
          wake();
          resolve();
        });
      }),
    close: () => {
      listener = () => {};
      cancel();
    },
  };
}

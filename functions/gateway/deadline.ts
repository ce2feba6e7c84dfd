// The end of a request before its reply has ended: its total time is over, or the client of a stream has left.
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Timer } from '#core/ports/platform.ts';

export type Ending = 'timeout' | 'left';

export type Deadline = ReturnType<typeof openDeadline>;

/** `client`: given where the request ends when the client leaves. */
export function openDeadline(
  timer: Timer,
  total: Millis,
  client: Pick<HttpExchange, 'hasLeft' | 'onLeave'> | undefined,
) {
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
  /** Calls this listener at the end, in place of an earlier one; immediately where the end has come. */
  const onEnd = (next: (why: Ending) => void) => {
    listener = next;
    if (ended !== undefined) listener(ended);
  };
  return {
    /** Why the request has ended; undefined while it may go on. */
    get ended() {
      return ended;
    },
    onEnd,
    /** Resolves after this time, or when the request ends. */
    sleep: (millis: Millis) =>
      new Promise<void>((resolve) => {
        const wake = timer(millis, resolve);
        onEnd(() => {
          wake();
          resolve();
        });
      }),
    /** No more timers: the request is over. */
    close: () => {
      listener = () => {};
      cancel();
    },
  };
}

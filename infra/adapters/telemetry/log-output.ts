// Lines of a log on their way out: one write for those of ten milliseconds, and none is lost when the process ends.

/** Milliseconds that a line may wait for others. */
const MAX_DELAY = 10;
/** Characters that wait at most. */
const MAX_WAITING = 64 * 1024;

/**
 * `write` must have written when it returns, as files, pipes and terminals do here: a write each would cost more than
 * most requests.
 */
export function createLines(write: (text: string) => void) {
  let waiting = '';
  const flush = () => {
    const text = waiting;
    waiting = '';
    if (text !== '') write(text);
  };
  return {
    /** Takes one line, its end included. Written within ten milliseconds; only a `kill -9` can lose it until then. */
    add: (line: string) => {
      if (waiting === '') setTimeout(flush, MAX_DELAY);
      waiting += line;
      if (waiting.length > MAX_WAITING) flush();
    },
    /** Writes what is waiting: at exit, where no timer follows. */
    flush,
  };
}

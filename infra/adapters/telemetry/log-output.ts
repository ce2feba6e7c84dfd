// The output of a log: one write for all lines of ten milliseconds, and no line is lost when the process ends.

/** Milliseconds that a line may wait for others. */
const MAX_DELAY = 10;
/** The maximum number of waiting characters. */
const MAX_WAITING = 64 * 1024;

/**
 * `write` must have written when it returns, as for files, pipes and terminals here. A write for each line would cost
 * more than most requests.
 */
export function createLines(write: (text: string) => void) {
  let waiting = '';
  const flush = () => {
    const text = waiting;
    waiting = '';
    if (text !== '') write(text);
  };
  return {
    /**
     * Adds one line with its line feed. It is written within ten milliseconds; until then only `kill -9` can lose it.
     */
    add: (line: string) => {
      if (waiting === '') setTimeout(flush, MAX_DELAY);
      waiting += line;
      if (waiting.length > MAX_WAITING) flush();
    },
    /** Writes the waiting lines: called at exit, when no timer runs any more. */
    flush,
  };
}

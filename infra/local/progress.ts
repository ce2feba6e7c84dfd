// Progress of a start, as a person sees it.

/** One line per step, with the seconds since the start. */
export interface Progress {
  step(text: string): void;
  say(text: string): void;
}

export function createProgress(write: (text: string) => void, now: () => number): Progress {
  const start = now();
  return {
    step: (text) => write(`${`${((now() - start) / 1000).toFixed(1)}s`.padStart(6)}  ${text}\n`),
    say: (text) => write(`${text}\n`),
  };
}

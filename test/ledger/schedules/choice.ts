// Choice of the next step: the first option, unless a random generator or a tape decides. The tape records each choice.

export interface Option {
  readonly label: string;
  /** The kind of the step. It is picked first, so that one of few faults is as likely as one of many calls. */
  readonly kind: string;
  run(): void;
}

export interface Chooser {
  choose(options: ReadonlyArray<Option>): Option | undefined;
  /** The index of each choice so far. */
  readonly tape: ReadonlyArray<number>;
  /** The number of options of each choice. */
  readonly widths: ReadonlyArray<number>;
}

type Pick = (options: ReadonlyArray<Option>, at: number) => number;

function chooserBy(pick: Pick): Chooser {
  const tape: number[] = [];
  const widths: number[] = [];
  return {
    tape,
    widths,
    choose(options) {
      const place = pick(options, tape.length);
      tape.push(place);
      widths.push(options.length);
      return options[place];
    },
  };
}

/** A random chooser. `deviationRate`: how often it deviates from the usual step. */
export function atRandom(next: () => number, deviationRate: number): Chooser {
  return chooserBy((options) => {
    if (options.length < 2 || next() >= deviationRate) return 0;
    const rest = options.slice(1);
    const kinds = [...new Set(rest.map(({ kind }) => kind))];
    const kind = kinds[Math.floor(next() * kinds.length)];
    const places = rest.flatMap((option, place) => (option.kind === kind ? [place + 1] : []));
    return places[Math.floor(next() * places.length)] ?? 0;
  });
}

/** Replays the tape; after its end, takes the usual step. */
export const byTape = (tape: ReadonlyArray<number>): Chooser =>
  chooserBy((options, at) => Math.min(tape[at] ?? 0, options.length - 1));

/** A shorter tape that fails too: its end cut off, and every unneeded deviation replaced by the usual step. */
export async function shrink(
  tape: ReadonlyArray<number>,
  isWrong: (tape: ReadonlyArray<number>) => Promise<boolean>,
  tries = 400,
): Promise<ReadonlyArray<number>> {
  let best = tape;
  let left = tries;
  const attempt = async (candidate: ReadonlyArray<number>): Promise<boolean> => {
    if (left <= 0) return false;
    left -= 1;
    if (!(await isWrong(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let size = best.length >> 1; size > 0; size >>= 1) {
    while (best.length > size && (await attempt(best.slice(0, best.length - size)))) {
      // Repeat while the tape becomes shorter.
    }
  }
  for (let at = best.length - 1; at >= 0; at -= 1) {
    if (best[at] !== 0) await attempt([...best.slice(0, at), 0, ...best.slice(at + 1)]);
  }
  return best;
}

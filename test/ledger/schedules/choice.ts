// Choice of the next step: the first option, unless a random generator or a recorded sequence of choices decides.

export interface Option {
  readonly label: string;
  /** The kind of the step. It is picked first, so that one of few faults is as likely as one of many calls. */
  readonly kind: string;
  run(): void;
}

export interface Chooser {
  choose(options: ReadonlyArray<Option>): Option | undefined;
  /** The index of each choice so far. */
  readonly sequence: ReadonlyArray<number>;
  /** The number of options of each choice. */
  readonly widths: ReadonlyArray<number>;
}

type Pick = (options: ReadonlyArray<Option>, at: number) => number;

function chooserBy(pick: Pick): Chooser {
  const sequence: number[] = [];
  const widths: number[] = [];
  return {
    sequence,
    widths,
    choose(options) {
      const index = pick(options, sequence.length);
      sequence.push(index);
      widths.push(options.length);
      return options[index];
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
    const indexes = rest.flatMap((option, index) => (option.kind === kind ? [index + 1] : []));
    return indexes[Math.floor(next() * indexes.length)] ?? 0;
  });
}

/** Replays the sequence; after its end, takes the usual step. */
export const bySequence = (sequence: ReadonlyArray<number>): Chooser =>
  chooserBy((options, at) => Math.min(sequence[at] ?? 0, options.length - 1));

/** A shorter sequence of choices that fails too: its end cut off, and every unneeded deviation replaced by the usual step. */
export async function shrink(
  sequence: ReadonlyArray<number>,
  isWrong: (sequence: ReadonlyArray<number>) => Promise<boolean>,
  tries = 400,
): Promise<ReadonlyArray<number>> {
  let best = sequence;
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
      // Repeat while the sequence becomes shorter.
    }
  }
  for (let at = best.length - 1; at >= 0; at -= 1) {
    if (best[at] !== 0) await attempt([...best.slice(0, at), 0, ...best.slice(at + 1)]);
  }
  return best;
}

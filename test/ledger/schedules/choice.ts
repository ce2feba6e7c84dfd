// Choice of the next step: the first one, unless chance or a tape says otherwise. What was chosen is on the tape.

export interface Option {
  readonly label: string;
  /** Chance picks a kind first: so that one of few faults is as likely as one of many calls. */
  readonly kind: string;
  happen(): void;
}

export interface Chooser {
  choose(options: ReadonlyArray<Option>): Option | undefined;
  /** The place of each choice among its options, so far. */
  readonly tape: ReadonlyArray<number>;
  /** Among how many. */
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

/** `wildness`: how often something else happens than what would. */
export function byChance(next: () => number, wildness: number): Chooser {
  return chooserBy((options) => {
    if (options.length < 2 || next() >= wildness) return 0;
    const rest = options.slice(1);
    const kinds = [...new Set(rest.map(({ kind }) => kind))];
    const kind = kinds[Math.floor(next() * kinds.length)];
    const places = rest.flatMap((option, place) => (option.kind === kind ? [place + 1] : []));
    return places[Math.floor(next() * places.length)] ?? 0;
  });
}

/** What the tape says; after its end whatever would happen. */
export const byTape = (tape: ReadonlyArray<number>): Chooser =>
  chooserBy((options, at) => Math.min(tape[at] ?? 0, options.length - 1));

/** A shorter tape that goes wrong too: its end cut off, and everything as it would happen that need not be otherwise. */
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
      // As long as it helps.
    }
  }
  for (let at = best.length - 1; at >= 0; at -= 1) {
    if (best[at] !== 0) await attempt([...best.slice(0, at), 0, ...best.slice(at + 1)]);
  }
  return best;
}

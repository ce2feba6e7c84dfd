// The name that was probably meant. The search is limited, because users choose both the name and the choices.

/** `; did you mean "gpt-4o"?`; empty if no choice is near enough. */
export type DidYouMean = (name: string, choices: ReadonlyArray<string>) => string;

/** The maximum length of a compared name: a suggestion does not help to find the mistake in a longer one. */
const MAX_LENGTH = 64;
/** Cells of comparison tables for all suggestions of one review or plan: about 5 ms. */
const MAX_STEPS = 1_000_000;

/**
 * Suggestions of one review or plan, which share one limit of work; beyond it there are none. A name is compared with
 * the same list of choices once.
 */
export function createDidYouMean(maxSteps = MAX_STEPS): DidYouMean {
  const work = { left: maxSteps };
  const known = new Map<ReadonlyArray<string>, Map<string, string>>();
  return (name, choices) => {
    const questions = known.get(choices) ?? new Map<string, string>();
    known.set(choices, questions);
    const question = questions.get(name) ?? toQuestion(nearest(name, choices, work));
    questions.set(name, question);
    return question;
  };
}

const toQuestion = (near: string | undefined): string =>
  near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;

interface Work {
  /** Steps that are left. */
  left: number;
}

/** The first choice with the fewest edits, at most a third of the name's length; case counts little. */
function nearest(name: string, choices: ReadonlyArray<string>, work: Work): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const asked = name.toLowerCase();
  let maxEdits = Math.floor(name.length / 3);
  let found: string | undefined;
  for (const choice of choices) {
    work.left -= 1;
    if (work.left <= 0) return undefined;
    if (choice.length > MAX_LENGTH || Math.abs(choice.length - name.length) > maxEdits) continue;
    const edits = editsBetween(asked, choice.toLowerCase(), maxEdits, work);
    if (edits > maxEdits) continue;
    found = choice;
    if (edits === 0) break;
    // Another choice is better only with fewer edits.
    maxEdits = edits - 1;
  }
  return found;
}

/**
 * The Levenshtein distance, computed row by row in a band around the diagonal. All distances above `maxEdits` are
 * equal.
 */
function editsBetween(left: string, right: string, maxEdits: number, work: Work): number {
  const far = maxEdits + 1;
  let row = Array.from({ length: right.length + 1 }, (_, index) => Math.min(index, far));
  for (let i = 1; i <= left.length; i += 1) {
    const next = new Array<number>(right.length + 1).fill(far);
    const [from, to] = [Math.max(0, i - maxEdits), Math.min(right.length, i + maxEdits)];
    work.left -= to - from + 1;
    if (from === 0) next[0] = Math.min(i, far);
    let minEdits = next[0] ?? far;
    for (let j = Math.max(1, from); j <= to; j += 1) {
      const change = (row[j - 1] ?? far) + (left[i - 1] === right[j - 1] ? 0 : 1);
      const edits = Math.min(change, (row[j] ?? far) + 1, (next[j - 1] ?? far) + 1, far);
      next[j] = edits;
      minEdits = Math.min(minEdits, edits);
    }
    if (minEdits > maxEdits) return far;
    row = next;
  }
  return row[right.length] ?? far;
}

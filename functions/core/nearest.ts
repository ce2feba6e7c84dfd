// The name that was probably meant.

/** `; did you mean "gpt-4o"?`, or nothing where no choice is near enough to be more than a guess. */
export function didYouMean(name: string, choices: ReadonlyArray<string>): string {
  const near = nearest(name, choices);
  return near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
}

/** The choice with the fewest edits, at most a third of the name's length; case counts little. */
export function nearest(name: string, choices: ReadonlyArray<string>): string | undefined {
  const maxEdits = Math.floor(name.length / 3);
  const rated = choices
    .filter((choice) => Math.abs(choice.length - name.length) <= maxEdits)
    .map((choice) => ({ choice, edits: editsBetween(name.toLowerCase(), choice.toLowerCase(), maxEdits) }))
    .filter(({ edits }) => edits <= maxEdits)
    .sort((left, right) => left.edits - right.edits);
  return rated[0]?.choice;
}

/** Levenshtein distance, row by row; anything above `most` is as far as anything else. */
function editsBetween(left: string, right: string, maxEdits: number): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    if (Math.min(...next) > maxEdits) return maxEdits + 1;
    row = next;
  }
  return row[right.length] ?? maxEdits + 1;
}

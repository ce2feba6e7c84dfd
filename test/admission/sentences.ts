// What does a refusal, or a condition, say, sentence by sentence?

/**
 * Sorted: a condition begins with its reason. Which entries a Secret has is told to who may read it, not to who reads a
 * condition.
 */
export function sentencesOf(message: string): ReadonlyArray<string> {
  const lines = message
    .trim()
    .replaceAll(/ \(it has [^)]*\)/g, '')
    .split('\n');
  return lines.length === 1 ? lines : lines.flatMap((line) => (line.startsWith('- ') ? [line.slice(2)] : [])).sort();
}

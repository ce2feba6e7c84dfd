// How long is "2 days" or "1d 12h"? go-openapi reads such texts where Go itself reads only `36h`.

const units: ReadonlyArray<[nanoseconds: bigint, ...names: string[]]> = [
  [1n, 'ns', 'nano'],
  [1_000n, 'us', 'µs', 'micro'],
  [1_000_000n, 'ms', 'milli'],
  [1_000_000_000n, 's', 'sec'],
  [60_000_000_000n, 'm', 'min'],
  [3_600_000_000_000n, 'h', 'hr', 'hour'],
  [86_400_000_000_000n, 'd', 'day'],
  [604_800_000_000_000n, 'w', 'wk', 'week'],
];

/** The sum of all numbers with a unit in the text, in nanoseconds; undefined where there is none. */
export function wordedDuration(text: string): bigint | undefined {
  const parts = [...text.matchAll(/(\d+)\s*([A-Za-zµ]+)/g)].flatMap(([, count = '', word = '']) => {
    const unit = units.find(([, ...names]) => isUnit(word.toLowerCase(), names));
    return unit ? [BigInt(count) * unit[0]] : [];
  });
  return parts.length === 0 ? undefined : parts.reduce((sum, part) => sum + part, 0n);
}

/** The last name of a unit may be longer: `seconds` is `sec…`. */
function isUnit(word: string, names: readonly string[]): boolean {
  return names.includes(word) || word.startsWith(names.at(-1) ?? '');
}

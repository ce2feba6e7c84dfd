// Words: those of infra/tools/words.ts do not come back, and those that are pending become fewer.
import { expect, test } from 'vitest';
import { type ForbiddenWord, findWords, occurrencesIn, WORDS } from '../../infra/tools/words.ts';

const found = findWords();

test.each(WORDS)('$pattern is written as $use', (word) => {
  const occurrences = found.get(word) ?? [];
  const [shown, more] = [occurrences.slice(0, 20), occurrences.length - 20];
  const list = shown.map(({ path, line, text }) => `${path}:${line}: ${text}`);
  const report = [...list, ...(more > 0 ? [`and ${more} more: node infra/tools/words.ts`] : [])].join('\n');
  expect(occurrences.length, report).toBeLessThanOrEqual(word.pending ?? 0);
  if (occurrences.length === 0)
    expect(word.pending, 'nothing is pending any longer: delete the number').toBeUndefined();
});

const COLOUR: ForbiddenWord = { pattern: /\bcolour\b/i, places: [], use: 'color', allowed: /CSS/ };
const PLACES = ['identifier', 'type', 'prose', 'message', 'file name'] as const;

test.each([
  ['a.ts', 'const lastColour = 1;', ['identifier']],
  ['a.ts', 'const COLOUR_OF_SKY = 1;', ['identifier']],
  ['a.ts', 'export interface Colour {', ['identifier', 'type']],
  ['a.ts', '// A colour.', ['prose']],
  ['a.ts', '/**\n * A\n * colour.\n */', ['prose']],
  ['a.ts', "log('the colour');", ['message']],
  ['a.ts', "import { a } from './colour.ts';", []],
  ['a.ts', '// A colour of CSS.', []],
  ['a.ts', 'const discoloured = 1;', []],
  ['a.lua', '-- A colour.', ['prose']],
  ['a.md', 'The colour `sky_colour`.', ['prose']],
  ['a.yaml', 'colour: blue', ['message']],
  ['test/sky-colour.ts', '', ['file name']],
])('%s with %j: found in %j', (path, text, places) => {
  const inPlace = (place: (typeof PLACES)[number]) =>
    occurrencesIn(path, text, [{ ...COLOUR, places: [place] }]).some(([, occurrences]) => occurrences.length > 0);
  expect(PLACES.filter(inPlace)).toEqual(places);
});

// States of a request, as the README shows them.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { NEXT_STATES } from '../requests.ts';

test('the README shows each state of a request, and the states that may follow', () => {
  const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \|.*\| ?(.*?) ?\|$/gm)];
  const shown = rows.map(([, state, next = '']) => [state, [...next.matchAll(/`(\w+)`/g)].map(([, name]) => name)]);
  expect(Object.fromEntries(shown)).toEqual(NEXT_STATES);
});

test('every state that may follow is a state', () => {
  for (const next of Object.values(NEXT_STATES).flat()) expect(NEXT_STATES).toHaveProperty(next);
});

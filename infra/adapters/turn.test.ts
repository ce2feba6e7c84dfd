import { expect, test } from 'vitest';
import { createTurn } from './turn.ts';

test('works of one turn run together, in order; one that throws drops none of the others, and its error is not lost', async () => {
  const [done, thrown]: [string[], unknown[]] = [[], []];
  const turn = createTurn((error) => void thrown.push(error));
  const bug = new Error('a bug');
  turn(() => void done.push('first'));
  turn(() => {
    throw bug;
  });
  turn(() => void done.push('third'));
  expect(done).toEqual([]);
  await new Promise(setImmediate);
  expect([done, thrown]).toEqual([['first', 'third'], [bug]]);
  turn(() => void done.push('next turn'));
  await new Promise(setImmediate);
  expect(done).toEqual(['first', 'third', 'next turn']);
});

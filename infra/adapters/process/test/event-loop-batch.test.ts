import { expect, test } from 'vitest';
import { createOwnedTurn, createTurn } from '../event-loop-batch.ts';

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

test('works that take long together are spread over turns, in order, and others get between them', async () => {
  const done: string[] = [];
  const turn = createTurn();
  const busy = (name: string) => () => {
    block(4);
    done.push(name);
  };
  setImmediate(() => setImmediate(() => done.push('beside')));
  for (const name of ['first', 'second', 'third', 'fourth']) turn(busy(name));
  while (done.length < 5) await new Promise(setImmediate);
  expect(done.filter((name) => name !== 'beside')).toEqual(['first', 'second', 'third', 'fourth']);
  expect(done.indexOf('beside')).toBeLessThan(4);
});

test('of works that take long one runs in a turn, and others get between them', async () => {
  const done: string[] = [];
  const turn = createOwnedTurn();
  const of = { namespace: 'a', key: 'k' };
  const work = (name: string) => () => {
    // The work itself follows: what is run resolves a promise.
    void Promise.resolve().then(() => {
      block(6);
      done.push(name);
    });
  };
  for (const name of ['first', 'second', 'third']) turn(of, work(name));
  const beside = (left: number): void => {
    done.push('beside');
    if (left > 0) setImmediate(() => beside(left - 1));
  };
  setImmediate(() => beside(2));
  while (done.length < 6) await new Promise(setImmediate);
  expect(done).toEqual(['first', 'beside', 'second', 'beside', 'third', 'beside']);
  turn(of, () => void done.push('later'));
  await new Promise(setImmediate);
  expect(done.at(-1)).toBe('later');
});

test('of short works many run in a turn', async () => {
  const turn = createOwnedTurn();
  const done: number[] = [];
  for (let work = 0; work < 100; work += 1) turn({ namespace: 'a', key: 'k' }, () => void done.push(work));
  let turns = 0;
  for (; done.length < 100; turns += 1) await new Promise(setImmediate);
  expect(turns).toBeLessThan(50);
});

test('works that take long run by turns of their namespaces, and of the keys of each', async () => {
  const done: string[] = [];
  const turn = createOwnedTurn();
  const works = ['a/1', 'a/1', 'a/1', 'a/2', 'a/2', 'b/1', 'b/1', 'c/1'];
  for (const [at, owner] of works.entries()) {
    const [namespace = '', key = ''] = owner.split('/');
    turn({ namespace, key }, () => void done.push(`${owner}: ${at}`));
  }
  while (done.length < works.length) await new Promise(setImmediate);
  expect(done).toEqual(['a/1: 0', 'b/1: 5', 'c/1: 7', 'a/2: 3', 'b/1: 6', 'a/1: 1', 'a/2: 4', 'a/1: 2']);
});

/** Keeps everything else waiting for so long. */
function block(millis: number): void {
  const end = performance.now() + millis;
  while (performance.now() < end);
}

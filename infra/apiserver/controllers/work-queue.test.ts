import { expect, test } from 'vitest';
import { silentLog } from '../../../test/silent-log.ts';
import { createWorkQueue } from './work-queue.ts';

test('an item added many times before its turn is worked once, one added during its turn again', async () => {
  const worked: string[] = [];
  const queue = createWorkQueue<string>({
    name: 'test',
    log: silentLog,
    keyOf: (item) => item,
    async work(item) {
      worked.push(item);
      if (worked.length === 1) queue.add('a');
      await undefined;
    },
  });
  for (const item of ['a', 'a', 'b', 'a']) queue.add(item);
  await expect.poll(() => worked).toEqual(['a', 'b', 'a']);
  await queue.stop();
});

test('no item is ever left lying, however adding and finishing interleave', async () => {
  let worked = 0;
  const queue = createWorkQueue<number>({
    name: 'test',
    log: silentLog,
    keyOf: String,
    work: async () => void worked++,
  });
  for (let i = 0; i < 200; i++) {
    queue.add(i);
    for (let turn = 0; turn < i % 7; turn++) await undefined;
  }
  await expect.poll(() => worked).toBe(200);
  await queue.stop();
});

test('work that fails is tried again until it succeeds', async () => {
  let tries = 0;
  const queue = createWorkQueue<string>({
    name: 'test',
    log: silentLog,
    keyOf: (item) => item,
    async work() {
      tries++;
      if (tries < 2) throw new Error('not yet');
    },
  });
  queue.add('a');
  await expect.poll(() => tries).toBe(2);
  await queue.stop();
});

import { expect, test } from 'vitest';
import { silentLog } from '../../../../test/support/silent-log.ts';
import { createWorkQueue } from '../../controllers/work-queue.ts';

const keyOf = (name: string) => ({ resource: '/configmaps', namespace: 'default', name });

test('an item added many times before its turn is worked once, one added during its turn again', async () => {
  const worked: string[] = [];
  const queue = createWorkQueue(silentLog, {
    name: 'test',
    async work(key, add) {
      worked.push(key.name);
      if (worked.length === 1) add(keyOf('a'));
      await undefined;
    },
  });
  for (const name of ['a', 'a', 'b', 'a']) queue.add(keyOf(name));
  await expect.poll(() => worked).toEqual(['a', 'b', 'a']);
  await queue.stop();
});

test('no item is ever left lying, however adding and finishing interleave', async () => {
  let worked = 0;
  const queue = createWorkQueue(silentLog, { name: 'test', work: async () => void worked++ });
  for (let i = 0; i < 200; i++) {
    queue.add(keyOf(String(i)));
    for (let turn = 0; turn < i % 7; turn++) await undefined;
  }
  await expect.poll(() => worked).toBe(200);
  await queue.stop();
});

test('work that fails is tried again until it succeeds', async () => {
  let tries = 0;
  const queue = createWorkQueue(silentLog, {
    name: 'test',
    async work() {
      tries++;
      if (tries < 2) throw new Error('not yet');
    },
  });
  queue.add(keyOf('a'));
  await expect.poll(() => tries).toBe(2);
  await queue.stop();
});

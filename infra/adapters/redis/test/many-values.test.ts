import { expect, test } from 'vitest';
import { AnswerRefused, type WorkMemory } from '../../backends/reply-memory.ts';
import { createRedisCounterStore } from '../counter-store.ts';

const workMemory: WorkMemory = { take: () => undefined, signal: new AbortController().signal };
const storeOf = (reply: object) =>
  createRedisCounterStore({ evaluate: async () => JSON.stringify(reply), instanceUid: 'i', workMemory });

test('a reply of very many small values is refused before it is parsed', async () => {
  const values = Array.from({ length: 60_000 }, () => ({}));
  await expect(storeOf({ counters: [], total: 0, x: values }).loaded(0, 500)).rejects.toThrow(AnswerRefused);
});

test('the largest page of counters is read', async () => {
  const counters = Array.from({ length: 500 }, (_, place) => `0:1 scope ${place}`);
  expect((await storeOf({ counters, total: 500 }).loaded(0, 500)).counters).toHaveLength(500);
});

// How do tests look at the key `chat`, and edit it?
import { expect } from 'vitest';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import type { Harness } from './harness.ts';
import { makeKey } from './objects.ts';

/** `harness` is asked anew for each call: each test has its own. */
export function createChat(harness: () => Harness) {
  const chat = () => harness().status(virtualKeys, 'chat');
  const ready = (name = 'chat') => harness().ready(virtualKeys, name);
  const published = async () => (await harness().value('chat-key')) ?? '';
  /** Its value, once it works. */
  const working = async (spec: object = {}) => {
    await harness().apply(makeKey(spec));
    expect((await harness().resync()).failed).toEqual({});
    return published();
  };
  const editKey = (spec: object, name = 'chat') => harness().edit(virtualKeys, name, { spec });
  return { chat, ready, published, working, editKey };
}

// How do tests look at the key `chat`, and edit it?
import { expect } from 'vitest';
import { virtualKeys } from '#crds/kinds.ts';
import type { Bed } from './bed.ts';
import { makeKey } from './objects.ts';

/** `bed` is asked anew for each call: each test has its own. */
export function createChat(bed: () => Bed) {
  const chat = () => bed().status(virtualKeys, 'chat');
  const ready = (name = 'chat') => bed().ready(virtualKeys, name);
  const published = async () => (await bed().value('chat-key')) ?? '';
  /** Its value, once it works. */
  const working = async (spec: object = {}) => {
    await bed().apply(makeKey(spec));
    expect((await bed().sweep()).failed).toEqual({});
    return published();
  };
  const editKey = (spec: object, name = 'chat') => bed().edit(virtualKeys, name, { spec });
  return { chat, ready, published, working, editKey };
}

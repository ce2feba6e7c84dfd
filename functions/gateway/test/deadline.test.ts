import { expect, test } from 'vitest';
import { Deadline } from '../request/deadline.ts';

test('every listener is called once at the end, also one that is added later, but not a removed one', async () => {
  let leave = () => {};
  const onLeave = (listener: () => void) => {
    leave = listener;
  };
  const client = { hasLeft: () => false, onLeave };
  const deadline = new Deadline(() => () => {}, 1000, client);
  const ends: string[] = [];
  deadline.onEnd((why) => ends.push(`first ${why}`));
  deadline.onEnd((why) => ends.push(`second ${why}`))();
  const asleep = deadline.sleep(1000);
  deadline.onEnd((why) => ends.push(`third ${why}`));
  leave();
  leave();
  await asleep;
  deadline.onEnd((why) => ends.push(`late ${why}`));
  expect(ends).toEqual(['first client_left', 'third client_left', 'late client_left']);
});

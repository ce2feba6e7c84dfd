import { expect, test } from 'vitest';
import { memory } from '../../../test/gateway/memory.ts';
import { toConditions, toTimestamp } from '../conditions/conditions.ts';
import type { Reason } from '../conditions/reasons.ts';

const NOON = Date.parse('2026-11-21T12:00:00.987Z');
const ready = (status: 'True' | 'False', reason: Reason, message = 'm') =>
  ({ type: 'Ready', status, reason, message }) as const;

test('judging the same thing again changes nothing, however late', () => {
  const first = toConditions([ready('True', 'Ready')], [], { generation: 1, now: NOON });
  expect(first).toEqual([
    { ...ready('True', 'Ready'), lastTransitionTime: '2026-11-21T12:00:00Z', observedGeneration: 1 },
  ]);
  expect(toConditions([ready('True', 'Ready')], first, { generation: 1, now: NOON + 60_000 })).toEqual(first);
});

test('another reason, message or generation keeps the transition time; another status moves it', () => {
  const first = toConditions([ready('False', 'Blocked')], [], { generation: 1, now: NOON });
  const [kept] = toConditions([ready('False', 'Expired', 'n')], first, { generation: 2, now: NOON + 60_000 });
  expect(kept).toMatchObject({
    reason: 'Expired',
    message: 'n',
    observedGeneration: 2,
    lastTransitionTime: '2026-11-21T12:00:00Z',
  });
  const [moved] = toConditions([ready('True', 'Ready')], first, { generation: 2, now: NOON + 60_000 });
  expect(moved?.lastTransitionTime).toBe('2026-11-21T12:01:00Z');
});

test('conditions of other types, which somebody else keeps there, stay', () => {
  const theirs = { ...ready('True', 'Ready'), reason: 'Fine', type: 'Theirs', lastTransitionTime: 'x' };
  expect(toConditions([ready('True', 'Ready')], [theirs], { generation: 1, now: NOON })[1]).toBe(theirs);
});

test('a long message is cut: names in it are chosen by tenants', () => {
  const [long] = toConditions([ready('False', 'Blocked', 'm'.repeat(40_000))], [], { generation: 1, now: NOON });
  expect(long?.message.length).toBe(2048);
});

test('a message that is cut keeps nothing in memory of the rest', async () => {
  const before = await memory();
  const conditions = Array.from({ length: 20 }, (_, n) =>
    toConditions([ready('False', 'Blocked', `${n}`.padEnd(4_000_000, 'm'))], [], { generation: 1, now: NOON }),
  );
  expect((await memory()) - before).toBeLessThan(8_000_000);
  expect(conditions.length).toBe(20);
});

test('dates are RFC 3339 in UTC, whole seconds', () => {
  expect(toTimestamp(NOON)).toBe('2026-11-21T12:00:00Z');
});

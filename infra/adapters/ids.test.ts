import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createIds, timeOf } from './ids.ts';

const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function idsAt(times: ReadonlyArray<number>, random = (count: number): Uint8Array => randomBytes(count)) {
  let place = 0;
  const ids = createIds({ clock: { now: () => times[Math.min(place++, times.length - 1)] ?? 0 }, random });
  return times.map(() => ids.next());
}

test('an id is a UUIDv7 that carries its millisecond', () => {
  const [id = ''] = idsAt([Date.UTC(2026, 10, 21)]);
  expect(id).toMatch(FORM);
  expect(timeOf(id)).toBe(Date.UTC(2026, 10, 21));
});

test('ids of one millisecond are in order and all different, whatever their number', () => {
  for (const fill of [0, 255]) {
    const ids = idsAt(new Array<number>(20_000).fill(1_700_000_000_000), (count) => new Uint8Array(count).fill(fill));
    expect(ids).toEqual(ids.toSorted());
    expect(new Set(ids).size).toBe(20_000);
    expect(ids.every((id) => FORM.test(id))).toBe(true);
    // 4,096 to a millisecond: the rest borrows from the next ones.
    expect(timeOf(ids.at(-1) ?? '') ?? 0).toBeLessThan(1_700_000_000_010);
  }
});

test('ids never go back while the clock stumbles by less than ten seconds', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9_999 }), { minLength: 2, maxLength: 200 }), (steps) => {
      const ids = idsAt(steps.map((step) => 1_700_000_000_000 + step));
      expect(ids).toEqual(ids.toSorted());
      expect(new Set(ids).size).toBe(ids.length);
    }),
  );
});

test('a clock that is set back by an hour is followed: the time in an id decides which budget window it belongs to', () => {
  const [, later = ''] = idsAt([1_700_003_600_000, 1_700_000_000_000]);
  expect(timeOf(later)).toBe(1_700_000_000_000);
});

test('text that is no UUIDv7 has no time', () => {
  for (const text of [
    '',
    'x',
    '00000000-0000-4000-8000-000000000000',
    '00000000-0000-7000-c000-000000000000',
    '0'.repeat(32),
  ]) {
    expect(timeOf(text)).toBeUndefined();
  }
});

test('two processes in the same millisecond do not make the same id', () => {
  const times = new Array<number>(5000).fill(1_700_000_000_000);
  expect(new Set([...idsAt(times), ...idsAt(times)]).size).toBe(10_000);
});

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createIds, timeOf } from '../ids.ts';

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

test('ids of one millisecond are all different, whatever their number, and of the right form', () => {
  const ids = idsAt(new Array<number>(20_000).fill(1_700_000_000_000));
  expect(new Set(ids).size).toBe(20_000);
  expect(ids.filter((id) => !FORM.test(id))).toEqual([]);
});

test('every random bit of an id is drawn: each digit takes every value that it may', () => {
  const ids = idsAt(new Array<number>(2_000).fill(1_700_000_000_000));
  const seen = Array.from({ length: 21 }, (_, place) => new Set(ids.map((id) => id.slice(15)[place])).size);
  const hyphens = new Set([3, 8]);
  expect(seen).toEqual(seen.map((_, place) => (hyphens.has(place) ? 1 : place === 4 ? 4 : 16)));
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

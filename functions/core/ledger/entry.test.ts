import { expect, test } from 'vitest';
import type { Booked, EntryKind } from '../ports/books.ts';
import { entryOf } from '../ports/entry.fixture.ts';
import { besideBooked } from './entry.ts';

const expired: Booked = { kind: 'expired', cost: 60n };
const settled: Booked = { kind: 'settled', cost: 40n };

test.each<[EntryKind, Booked[], Array<[EntryKind, bigint]>]>([
  ['settled', [], [['settled', 50n]]],
  // The expiry of the old epoch is booked: it and the correction add up to the cost.
  ['settled', [expired], [['correction', -10n]]],
  ['expired', [], [['expired', 50n]]],
  ['expired', [settled], []],
  // A repeated entry: PostgreSQL has it once.
  ['expired', [expired], [['expired', 50n]]],
  ['settled', [settled], [['settled', 50n]]],
  ['correction', [expired], [['correction', 50n]]],
])('a hold that ends twice, under two epochs, is charged once: %s, beside %o', (kind, booked, left) => {
  const entries = besideBooked(entryOf({ kind, cost: 50n }), booked);
  expect(entries.map((entry) => [entry.kind, entry.cost])).toEqual(left);
});

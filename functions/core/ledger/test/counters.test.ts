import { beforeEach, expect, test } from 'vitest';
import type { ScopePolicy } from '../../ports/policy.ts';
import { createCounters } from '../counters.ts';

const HOUR = 3_600_000;
let chargedCountersOf: ReturnType<typeof createCounters>['ofScopes'];

beforeEach(() => {
  chargedCountersOf = createCounters().ofScopes;
});

const scope = (scopeId: string, duration: string, anchor = 0): ScopePolicy => ({
  scopeId,
  kind: 'key',
  name: scopeId,
  blocked: false,
  models: [],
  anchor,
  budget: { limit: '1000', duration, alignment: 'Rolling' },
});

test('the same scopes in the same windows are the same charges, so they are encoded once', () => {
  const scopes = [scope('key', '1h'), scope('team', '1d')];
  expect(chargedCountersOf(scopes, HOUR - 1)).toBe(chargedCountersOf(scopes, 0));
});

test('when one window ends, and when the clock is set back, each is charged in the window that holds the instant', () => {
  const scopes = [scope('key', '1h'), scope('team', '1d')];
  const startsAt = (now: number) => chargedCountersOf(scopes, now).scopeWindows.map(({ window }) => window.start);
  expect([HOUR - 1, HOUR, 24 * HOUR, HOUR, 0].map(startsAt)).toEqual([
    [0, 0],
    [HOUR, 0],
    [24 * HOUR, 24 * HOUR],
    [HOUR, 0],
    [0, 0],
  ]);
});

test('a refreshed policy is charged by its new contents, in the same counter where its window is the same', () => {
  const [before] = chargedCountersOf([scope('key', '1h')], 0).counters;
  expect(chargedCountersOf([scope('key', '2h')], 0).scopeWindows[0]?.window.end).toBe(2 * HOUR);
  expect(chargedCountersOf([scope('key', '1h')], 0).counters[0]).toBe(before);
});

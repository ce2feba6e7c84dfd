import { expect, test } from 'vitest';
import type { ScopePolicy } from '../ports/policy.ts';
import { createCharges } from './charges.ts';

const HOUR = 3_600_000;

const scope = (scopeId: string, duration: string, anchor = 0): ScopePolicy => ({
  ...{ scopeId, kind: 'key', name: scopeId, blocked: false, models: [], anchor },
  budget: { limit: '1000', duration, alignment: 'Rolling' },
});

test('the same scopes in the same windows are the same charges, so they are encoded once', () => {
  const chargesOf = createCharges();
  const scopes = [scope('key', '1h'), scope('team', '1d')];
  expect(chargesOf(scopes, HOUR - 1)).toBe(chargesOf(scopes, 0));
});

test('when one window ends, and when the clock is set back, each is charged in the window that holds the instant', () => {
  const chargesOf = createCharges();
  const scopes = [scope('key', '1h'), scope('team', '1d')];
  const startsAt = (now: number) => chargesOf(scopes, now).all.map(({ window }) => window.start);
  expect([HOUR - 1, HOUR, 24 * HOUR, HOUR, 0].map(startsAt)).toEqual([
    [0, 0],
    [HOUR, 0],
    [24 * HOUR, 24 * HOUR],
    [HOUR, 0],
    [0, 0],
  ]);
  expect(chargesOf(scopes, HOUR).counters.map(({ window }) => window.start)).toEqual([HOUR, 0]);
});

test('a refreshed policy is charged by its new contents', () => {
  const chargesOf = createCharges();
  const before = [scope('key', '1h')];
  chargesOf(before, 0);
  expect(chargesOf([scope('key', '2h')], 0).all[0]?.window.end).toBe(2 * HOUR);
});

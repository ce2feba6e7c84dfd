// Is a store in the gateway's own memory audited once a minute, also after a failure, until the process stops?
import { expect, test } from 'vitest';
import { keepMaintained } from './own-store.ts';

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a maintenance a minute, a failed one is told and repeated, and none after the end', async () => {
  const due: Array<() => void> = [];
  const delays: number[] = [];
  const warnings: unknown[] = [];
  const timer = (millis: number, callback: () => void) => {
    delays.push(millis);
    due.push(callback);
    return () => void due.splice(due.indexOf(callback), 1);
  };
  const log = { info: () => {}, warn: (...told: unknown[]) => warnings.push(told), error: () => {} };
  let runs = 0;
  const maintain = async () => {
    runs += 1;
    if (runs === 1) throw new Error('PostgreSQL is away');
  };
  const stop = keepMaintained(maintain, { timer, log });
  for (let minute = 1; minute <= 2; minute += 1) {
    due.shift()?.();
    await settled();
    expect(runs).toBe(minute);
  }
  expect(delays).toEqual([60_000, 60_000, 60_000]);
  expect(warnings).toEqual([['the store could not be audited', { why: 'PostgreSQL is away' }]]);
  stop();
  expect(due).toEqual([]);
});

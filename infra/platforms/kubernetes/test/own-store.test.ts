// Is a store in the gateway's own memory audited once a minute, also after a failure, until the process stops?
import { expect, test } from 'vitest';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { keepMaintained } from '../own-store.ts';

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a maintenance a minute, a failed one is told and repeated, one that hangs is not overtaken, and none after the end', async () => {
  const due: Array<() => void> = [];
  const delays: number[] = [];
  const warnings: unknown[] = [];
  const timer = (millis: number, callback: () => void) => {
    delays.push(millis);
    due.push(callback);
    return () => void due.splice(due.indexOf(callback), 1);
  };
  const log = { info: () => {}, warn: (...fields: unknown[]) => warnings.push(fields), error: () => {} };
  const metrics = createMetrics();
  let runs = 0;
  const maintain = async () => {
    runs += 1;
    if (runs === 1) throw new Error('PostgreSQL is away');
    if (runs === 3) await new Promise(() => undefined);
  };
  const stop = keepMaintained(maintain, { timer, log, metrics, instanceUid: 'instance' });
  for (let minute = 1; minute <= 4; minute += 1) {
    due.shift()?.();
    await settled();
    expect(runs).toBe(Math.min(minute, 3));
  }
  expect(delays).toEqual(Array(5).fill(60_000));
  const fields = { instance: 'instance', why: 'PostgreSQL is away' };
  expect(warnings).toEqual([['ledger: the counters of the counter store cannot be audited', fields]]);
  expect(await metrics.render()).toContain('gateway_operator_ledger_failures_total{step="maintenance"} 1');
  stop();
  expect(due).toEqual([]);
});

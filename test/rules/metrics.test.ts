// The table of metrics: what the code counts is in it, with its type, and nothing else is.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { METRICS } from '#core/ports/metric-table.ts';
import { ROOT } from '../../infra/tools/imports.ts';

const TABLE = 'functions/core/ports/metric-table.ts';
const code = globSync('{functions,infra/{adapters,runtime,platforms}}/**/*.ts', { cwd: ROOT })
  .filter((path) => path !== TABLE && !path.includes('/test/'))
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n');
const METHODS = { add: 'counter', set: 'gauge', observe: 'histogram' } as const;

test('each metric that the code names is in the table, and each of the table is named', () => {
  const named = new Set([...code.matchAll(/'(gateway_operator_\w+)'/g)].map(([, name]) => name));
  expect([...named].sort()).toEqual([...METRICS.keys()].sort());
});

test('a metric has the type of the method that counts it, and its name the ending of its type', () => {
  const calls = [...code.matchAll(/\.(add|set|observe)\(\s*'(gateway_operator_\w+)'/g)];
  expect(calls.length).toBeGreaterThan(20);
  for (const [, method, name = ''] of calls)
    expect(METRICS.get(name)?.type, name).toBe(METHODS[method as keyof typeof METHODS]);
  for (const [name, { type }] of METRICS) expect(name.endsWith('_total'), name).toBe(type === 'counter');
});

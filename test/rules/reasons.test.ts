// Reasons: each row of the table has code that gives the reason, and a test that expects it.
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REASONS, type Reason } from '#core/conditions/reasons.ts';
import { ROOT } from '../../infra/tools/imports.ts';

const textOf = (patterns: ReadonlyArray<string>, isTest: boolean): string =>
  globSync(patterns, { cwd: ROOT })
    .filter((path) => /(^|\/)test\//.test(path) === isTest && !path.endsWith('conditions/reasons.ts'))
    .map((path) => readFileSync(`${ROOT}/${path}`, 'utf8'))
    .join('\n');

/** A run that was cut between two of its writes leaves it. No test stops there. */
const BETWEEN_WRITES: Reason = 'Pending';

test.each([
  ['code that gives it', textOf(['functions/**/*.ts', 'crds/**/*.ts'], false)],
  ['a test that names it', textOf(['functions/**/*.ts', 'test/**/*.ts', 'infra/**/*.ts'], true)],
])('each reason has %s', (_, text) => {
  expect(
    Object.keys(REASONS).filter((reason) => reason !== BETWEEN_WRITES && !new RegExp(`\\b${reason}\\b`).test(text)),
  ).toEqual([]);
});

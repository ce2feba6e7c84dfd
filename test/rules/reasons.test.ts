// Reasons: each row of the table has code that gives the reason, and a test that expects it. One place reads what
// blocks an object.
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { REASONS, type Reason } from '#core/conditions/reasons.ts';
import { ROOT } from '../../infra/tools/imports.ts';

const textOf = (patterns: ReadonlyArray<string>, isTest: boolean): string =>
  globSync(patterns, { cwd: ROOT })
    .filter((path) => /(^|\/)test\//.test(path) === isTest && !path.endsWith('conditions/reasons.ts'))
    .map((path) => readFileSync(`${ROOT}/${path}`, 'utf8'))
    .join('\n');

/** The name of a rule for Users and Teams is a template that begins with the kind. */
const patternOf = (reason: string) =>
  new RegExp(`\\b${reason}\\b|\`${reason.replace(/^(User|Team)/, '\\$\\{kind\\}')}\``);

/** A run that was cut between two of its writes leaves it. No test stops there. */
const BETWEEN_WRITES: Reason = 'Pending';

test.each([
  ['code that gives it', textOf(['functions/**/*.ts', 'crds/**/*.ts'], false)],
  ['a test that names it', textOf(['functions/**/*.ts', 'test/**/*.ts', 'infra/**/*.ts'], true)],
])('each reason has %s', (_, text) => {
  expect(Object.keys(REASONS).filter((reason) => reason !== BETWEEN_WRITES && !patternOf(reason).test(text))).toEqual(
    [],
  );
});

test("only OWN_BLOCKERS reads `spec.blocked`, and the spec of a User's own VirtualKey, which copies it", () => {
  const reading = globSync('functions/reconcile/**/*.ts', { cwd: ROOT }).filter(
    (path) =>
      !path.includes('/test/') &&
      /\bspec\??\.blocked\b(?! is)|\bblocked\b[^{}]*\} = [\w.]*spec\b|spec: \{[^{}]*\bblocked\b/.test(
        readFileSync(`${ROOT}/${path}`, 'utf8'),
      ),
  );
  expect(reading.sort()).toEqual(['functions/reconcile/key/own-blockers.ts', 'functions/reconcile/plan/owned-key.ts']);
});

import { describe, expect, test } from 'vitest';
import { type KindName, kindOf, kinds, virtualKeys } from '../kinds/kinds.ts';
import { validate } from '../validation/validate.ts';
import { cases } from './cases/all.ts';
import { good, objectsOf } from './cases/case.ts';

describe('an object is judged by what it alone can prove', () => {
  test.each(cases)('$kind $what', (one) => {
    const { object, old } = objectsOf(one);
    const found = validate(kindOf[one.kind], object, old).violations.map(({ rule, path }) => [rule, path]);
    expect(found).toEqual(one.findings);
  });
});

test('a finding says the value, what is wrong and what to do', () => {
  const spec = { ...good.VirtualKey.spec, maxBudget: 10, budgetDuration: '30', models: ['a', 'a'], blocked: 'no' };
  expect(validate(virtualKeys, { metadata: { name: 'app' }, spec }).violations).toMatchInlineSnapshot(`
    [
      {
        "message": "is already element 0 of the list; remove one of the two",
        "path": "spec.models[1]",
        "rule": "Duplicate",
        "type": "Duplicate value",
        "value": "a",
      },
      {
        "message": "must be a string; put it in quotes, "10"",
        "path": "spec.maxBudget",
        "rule": "WrongType",
        "type": "Invalid value",
        "value": 10,
      },
      {
        "message": "must be a number from 1 and a unit (s, m, h, d, w or mo), e.g. "30d"",
        "path": "spec.budgetDuration",
        "rule": "Malformed",
        "type": "Invalid value",
        "value": "30",
      },
      {
        "message": "must be true or false; write it without quotes",
        "path": "spec.blocked",
        "rule": "WrongType",
        "type": "Invalid value",
        "value": "no",
      },
    ]
  `);
});

test('a rule about two fields is asked whatever is wrong with the others, and not of fields that are malformed', () => {
  const found = (kind: KindName, spec: object) =>
    validate(kindOf[kind], { metadata: { name: 'x' }, spec }).violations.map(({ path }) => path);
  const user = { ...good.User.spec, userEmail: 'nobody', autoCreateKey: true, maxBudget: 'ten' };
  expect(found('User', user)).toEqual(['spec.userEmail', 'spec.maxBudget', 'spec.keyAlias', 'spec.budgetDuration']);
  const key = { ...good.VirtualKey.spec, keyAlias: ' ', softBudget: '11', rotation: { every: '1d', overlap: '2x' } };
  expect(found('VirtualKey', key)).toEqual(['spec.keyAlias', 'spec.rotation.overlap', 'spec.softBudget']);
});

test('any JSON can be judged', () => {
  const odd = [undefined, null, 1, 'spec', [], [1], { models: {} }, { models: [null, [], 1] }, { connectionRef: 'x' }];
  for (const kind of kinds) {
    for (const spec of odd) {
      expect(validate(kind, { metadata: {}, spec }, { spec }).violations.length, JSON.stringify(spec)).toBeGreaterThan(
        0,
      );
      expect(validate(kind, { spec: good[kind.kind].spec }, { spec }).violations, JSON.stringify(spec)).toEqual([]);
    }
  }
});

test('an object of generateName has no name to judge', () => {
  for (const kind of kinds) expect(validate(kind, { metadata: {}, spec: good[kind.kind].spec }).violations).toEqual([]);
});

/** What makes a careless pattern go back and forth: a pattern that does takes minutes for these, not milliseconds. */
const LONG = ['a', 'a.', 'a-', '.', '-', ' ', '1', '1.', '/', '@', 'a@', 'a/', '\u2003', 'é'].map(
  (text) => `a${text.repeat(50_000)}!\n`,
);

test('a long hostile text anywhere is judged immediately', () => {
  const full = cases.filter(({ what, findings }) => findings.length === 0 && /every|all the rest/.test(what));
  expect(new Set(full.map(({ kind }) => kind)).size).toBeGreaterThan(2);
  const start = process.cpuUsage();
  for (const one of full) {
    for (const long of LONG) {
      for (const spec of withText(objectsOf(one).object.spec, long))
        validate(kindOf[one.kind], { metadata: { name: long }, spec });
    }
  }
  // Of this process: who else runs on the machine says nothing of a pattern that never ends.
  const { user, system } = process.cpuUsage(start);
  expect((user + system) / 1000).toBeLessThan(10_000);
}, 120_000);

/** Copies of a value with one text, or the name of one more member, replaced by this one. */
function* withText(value: unknown, long: string): Generator<unknown> {
  if (typeof value === 'string') yield long;
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield { ...value, [long]: 'x' };
  for (const [name, child] of Object.entries(value)) {
    for (const copy of withText(child, long)) {
      yield Array.isArray(value) ? value.with(Number(name), copy) : { ...value, [name]: copy };
    }
  }
}

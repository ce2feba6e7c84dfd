import { describe, expect, test } from 'vitest';
import { cases } from './cases/all.ts';
import { good, objectsOf } from './cases/case.ts';
import { judge } from './judge.ts';
import { kinds, virtualKeys } from './kinds.ts';

const kindOf = (name: string) => {
  const kind = kinds.find((one) => one.kind === name);
  if (kind === undefined) throw new Error(`no kind ${name}`);
  return kind;
};

describe('an object is judged by what it alone can prove', () => {
  test.each(cases)('$kind $what', (one) => {
    const { object, old } = objectsOf(one);
    const found = judge(kindOf(one.kind), object, old).map(({ rule, path }) => [rule, path]);
    expect(found).toEqual(one.findings);
  });
});

test('a finding says the value, what is wrong and what to do', () => {
  const spec = { ...good.VirtualKey.spec, maxBudget: 10, budgetDuration: '30', models: ['a', 'a'], blocked: 'no' };
  expect(judge(virtualKeys, { metadata: { name: 'app' }, spec })).toMatchInlineSnapshot(`
    [
      {
        "message": "is a number, not a string: put it in quotes, "10"",
        "path": "spec.maxBudget",
        "rule": "WrongType",
        "value": 10,
      },
      {
        "message": "is not a duration: write a number from 1 and one of the units s, m, h, d, w, mo, e.g. "30d"",
        "path": "spec.budgetDuration",
        "rule": "Malformed",
        "value": "30",
      },
      {
        "message": "is a string, not a boolean: write true or false, without quotes",
        "path": "spec.blocked",
        "rule": "WrongType",
        "value": "no",
      },
      {
        "message": "stands in the list already, at spec.models[0]: remove one of the two",
        "path": "spec.models[1]",
        "rule": "Duplicate",
        "value": "a",
      },
    ]
  `);
});

test('any JSON can be judged', () => {
  const odd = [undefined, null, 1, 'spec', [], [1], { models: {} }, { models: [null, [], 1] }, { connectionRef: 'x' }];
  for (const kind of kinds) {
    for (const spec of odd) {
      expect(judge(kind, { metadata: {}, spec }, { spec }).length, JSON.stringify(spec)).toBeGreaterThan(0);
      expect(judge(kind, { spec: good[kind.kind].spec }, { spec }), JSON.stringify(spec)).toEqual([]);
    }
  }
});

test('an object of generateName has no name to judge', () => {
  for (const kind of kinds) expect(judge(kind, { metadata: {}, spec: good[kind.kind].spec })).toEqual([]);
});

// A strategic merge does what a real API server does: the golden file is its answers (strategic-merge.world.test.ts).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PatchError } from '../../../infra/apiserver/codec/patches.ts';
import { strategicMerge } from '../../../infra/apiserver/codec/strategic-merge.ts';
import { coreSchema } from '../../../infra/apiserver/schema/core-schemas.ts';
import { goJson } from '../../../infra/apiserver/schema/go-format.ts';
import { isObject } from '../../../infra/apiserver/schema/json.ts';
import { type StrategicAnswer, strategicCases } from './cases.ts';

const golden: Record<string, StrategicAnswer> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'strategic.golden.json'), 'utf8'),
);

// Refused by what the patched object is, which is judged after the merge.
const judgedLater = [
  '$patch: replace inside a container',
  'an object for a list',
  'a list for an object',
  'text for an object',
];

describe('strategic merge', () => {
  test.each(strategicCases)('$name', ({ name, apiVersion, kind, patch }) => {
    const answer = golden[name];
    if (answer === undefined) throw new Error('not recorded');
    const merge = () => strategicMerge(coreSchema(apiVersion, kind), answer.live, patch);
    if (answer.patched) expect(undefaulted(merge())).toEqual(undefaulted(answer.patched));
    else if (judgedLater.includes(name)) expect(merge).not.toThrow();
    else expect(merge).toThrow(PatchError);
  });

  test('the target is not changed', () => {
    const target = { data: { a: '1' }, metadata: { finalizers: ['a'] } };
    strategicMerge(coreSchema('v1', 'ConfigMap'), target, {
      data: { a: null, b: '2' },
      metadata: { finalizers: ['b'] },
    });
    expect(target).toEqual({ data: { a: '1' }, metadata: { finalizers: ['a'] } });
  });
});

const defaulted = /^(protocol|targetPort|defaultMode|imagePullPolicy|terminationMessagePath|terminationMessagePolicy)$/;

/**
 * Without what a kind fills in by itself, without what is empty, and without the order of merged lists, which ours does
 * not bring about.
 */
function undefaulted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(undefaulted).sort(byText);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).map(([key, child]) => [key, key === 'args' ? child : undefaulted(child)] as const);
  return Object.fromEntries(
    kept.filter(([key, child]) => !defaulted.test(key) && !(isObject(child) && Object.keys(child).length === 0)),
  );
}

function byText(left: unknown, right: unknown): number {
  return goJson(left) < goJson(right) ? -1 : 1;
}

// Schemas validate as a real API server does: the golden files are its answers (structural.world.test.ts records them).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import { prune } from '../../../infra/apiserver/schema/prune.ts';
import { type Rule, type Schema, SchemaError } from '../../../infra/apiserver/schema/schema.ts';
import { createStructural } from '../../../infra/apiserver/schema/structural.ts';
import { bounds } from './bounds.ts';
import { type Answer, objectOf, type SchemaCase, type SchemaCases } from './case.ts';
import { ratcheting } from './ratcheting.ts';
import { rules } from './rules.ts';

describe.each([bounds, rules, ratcheting])('$name', (table) => {
  const golden: Record<string, Answer> = JSON.parse(
    readFileSync(join(import.meta.dirname, `${table.name}.golden.json`), 'utf8'),
  );
  const decide = decider(table);

  test.each(table.cases)('$name', (one) => {
    const expected = golden[one.name];
    expect(expected, 'recorded').toBeDefined();
    if (expected?.refused === undefined) expect(decide(one)).toEqual(expected);
  });

  test('every recorded answer has a case', () => {
    expect(Object.keys(golden).sort()).toEqual(table.cases.map(({ name }) => name).sort());
  });
});

function decider({ schema }: SchemaCases): (one: SchemaCase) => Answer {
  const structural = createStructural(schema);
  const stored = (object: JsonObject) => structural.applyDefaults(prune(schema, object).object);
  return (one) => {
    const { unknown } = prune(schema, objectOf(one));
    const object = stored(objectOf(one));
    const { causes, warnings } = structural.validate(
      object,
      one.old === undefined ? undefined : stored(objectOf(one, one.old)),
    );
    return {
      ...(unknown.length > 0 ? { unknown } : {}),
      ...(warnings.length > 0 ? { warnings: warnings.map(({ field, message }) => `${field}: ${message}`) } : {}),
      ...(causes.length > 0 ? { causes: sorted(causes) } : { stored: object.spec ?? null }),
    };
  };
}

/** A real API server walks Go's maps: the order of its causes is chance. */
function sorted<T>(causes: readonly T[]): T[] {
  return [...causes].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

describe('a schema that cannot be used', () => {
  const rules = (rule: object): Schema => ({
    type: 'object',
    properties: { spec: { items: { 'x-kubernetes-validations': [rule as Rule] } } },
  });

  test.each([
    [
      rules({ rule: 'self.nope() == 1' }),
      'properties[spec].items.x-kubernetes-validations[0].rule',
      /^compilation failed: .*nope/,
    ],
    [
      rules({ rule: 'sefl == 1' }),
      'properties[spec].items.x-kubernetes-validations[0].rule',
      /^compilation failed: .*sefl/,
    ],
    [
      { properties: { a: { pattern: '(' } } },
      'properties[a].pattern',
      /^must be a valid regular expression, but isn't: /,
    ],
    [{ items: { pattern: '^(?!a)b' } }, 'items.pattern', /invalid or unsupported Perl syntax: `\(\?!`/],
    [{ pattern: '(a)\\1' }, 'pattern', /invalid escape sequence: `\\1`/],
    [{ anyOf: [{}, { pattern: '[' }] }, 'anyOf[1].pattern', /^must be a valid regular expression/],
  ] satisfies [Schema, string, RegExp][])('%j is refused at its place', (schema, field, words) => {
    const create = () => createStructural(schema);
    expect(create).toThrow(SchemaError);
    expect(create).toThrow(expect.objectContaining({ field, message: expect.stringMatching(words) }));
  });
});

test('nothing that is judged is changed', () => {
  const object = {
    apiVersion: 'v1',
    kind: 'Sample',
    metadata: { a: 1 },
    spec: { must: 'x', mode: null, nope: 1, map: [{ name: 'a' }] },
  };
  const before = structuredClone(object);
  const structural = createStructural(bounds.schema);
  prune(bounds.schema, object);
  structural.applyDefaults(object);
  structural.validate(object, object);
  expect(object).toEqual(before);
});

// Objects that show how CEL rules are validated, and what an update may keep.
import type { Schema } from '../../../infra/apiserver/schema/schema.ts';
import type { SchemaCase, SchemaCases } from './case.ts';

const text = { type: 'string', maxLength: 20 } as const;

/** One property of `spec` per rule, so that each case breaks one. */
const fields: Readonly<Record<string, Schema>> = {
  plain: { ...text, 'x-kubernetes-validations': [{ rule: "self.startsWith('a')" }] },
  worded: { ...text, 'x-kubernetes-validations': [{ rule: "self.startsWith('a')", message: 'must begin with an a' }] },
  lines: { ...text, 'x-kubernetes-validations': [{ rule: "self == 'a' ||\n  self == 'b'", message: 'a or b' }] },
  broken: { ...text, 'x-kubernetes-validations': [{ rule: 'int(self) > 1', message: 'above one' }] },
  brokenUnworded: { ...text, 'x-kubernetes-validations': [{ rule: 'int(self) > 1' }] },
  fixed: { ...text, 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }] },
  grows: {
    type: 'integer',
    'x-kubernetes-validations': [
      {
        rule: 'oldSelf.hasValue() ? self >= oldSelf.value() : self > 5',
        optionalOldSelf: true,
        message: 'only grows, from 6',
      },
    ],
  },
  reasons: {
    type: 'object',
    properties: { a: text, b: text, c: text },
    'x-kubernetes-validations': [
      { rule: "!has(self.a) || self.a != 'x'", fieldPath: '.a', message: 'no x' },
      { rule: 'has(self.b)', fieldPath: '.b', message: 'b please' },
      { rule: "!has(self.c) || self.c != 'x'", fieldPath: '.c', message: 'again' },
    ],
  },
  place: {
    type: 'object',
    properties: {
      'foo.bar': text,
      list: { type: 'array', maxItems: 3, items: text },
      inner: { type: 'object', properties: { deep: text } },
    },
    'x-kubernetes-validations': [
      { rule: "!has(self.foo__dot__bar) || self.foo__dot__bar == 'a'" },
      { rule: "!has(self.inner) || self.inner.deep == 'a'", fieldPath: '.inner.deep', message: 'must be a' },
    ],
  },
  ratio: { type: 'number', 'x-kubernetes-validations': [{ rule: 'self / 2.0 < 1.2' }] },
  count: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self / 2 == 1' }] },
  sum: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    'x-kubernetes-validations': [{ rule: 'has(self.a) != has(self.b)', message: 'exactly one of a and b' }],
  },
  absent: {
    type: 'object',
    properties: { a: text },
    'x-kubernetes-validations': [{ rule: "self.a == 'a'" }],
  },
  items: {
    type: 'array',
    maxItems: 5,
    items: {
      type: 'object',
      properties: { name: text, size: { type: 'integer' } },
      'x-kubernetes-validations': [{ rule: 'self.size > 0', message: 'needs a size' }],
    },
    'x-kubernetes-validations': [
      { rule: "self.exists_one(i, i.name == 'a')", message: 'exactly one a' },
      { rule: "self.filter(i, i.size > 1).map(i, i.name) != ['c']", message: 'not c alone' },
    ],
  },
  keyed: {
    type: 'array',
    maxItems: 5,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: {
      type: 'object',
      required: ['name'],
      properties: {
        name: text,
        size: {
          type: 'integer',
          'x-kubernetes-validations': [{ rule: 'self > 0' }, { rule: 'self >= oldSelf', message: 'never shrinks' }],
        },
      },
      'x-kubernetes-validations': [{ rule: "self.name != 'bad'", message: 'not bad' }],
    },
  },
  named: {
    type: 'object',
    maxProperties: 3,
    additionalProperties: { ...text, 'x-kubernetes-validations': [{ rule: "self != 'x'" }] },
    'x-kubernetes-validations': [{ rule: "self.all(k, k.startsWith('a'))", message: 'keys begin with a' }],
  },
  when: {
    type: 'string',
    format: 'date-time',
    'x-kubernetes-validations': [{ rule: "self > timestamp('2020-01-01T00:00:00Z')" }],
  },
  every: { type: 'string', 'x-kubernetes-validations': [{ rule: "duration(self) >= duration('1m')" }] },
  port: {
    'x-kubernetes-int-or-string': true,
    'x-kubernetes-validations': [{ rule: "type(self) == int ? self > 0 : self != 'no'", message: 'a port' }],
  },
  maybe: { ...text, nullable: true, 'x-kubernetes-validations': [{ rule: "self == 'a'" }] },
  reserved: {
    type: 'object',
    properties: { namespace: text, 'a-b': text, 'a/b': text, a__b: text, if: text },
    'x-kubernetes-validations': [
      {
        rule: "self.__namespace__ == 'a' && self.a__dash__b == 'b' && self.a__slash__b == 'c' && self.a__underscores__b == 'd' && self.__if__ == 'e'",
        message: 'reserved names',
      },
    ],
  },
  functions: {
    ...text,
    'x-kubernetes-validations': [
      { rule: "self.split('-').size() == 2", message: 'split' },
      { rule: 'self.lowerAscii() == self && self.upperAscii() != self', message: 'lowerAscii' },
      { rule: "self.trim() == self && self.indexOf('-') == self.lastIndexOf('-')", message: 'trim' },
      { rule: "self.substring(0, 1) == 'a'", message: 'substring' },
      { rule: "self.matches('^[a-z]+-[0-9]+$')", message: 'matches' },
      {
        rule: "size(self) > 1 && string(1.5) == '1.5' && double('1.5') == 1.5 && int('12') == 12 && bool('true') && string(12) == '12'",
        message: 'conversions',
      },
      {
        rule: "timestamp('2020-01-02T03:04:05Z').getFullYear() == 2020 && duration('1h').getMinutes() == 60 && timestamp('2020-01-01T00:00:00Z') + duration('1h') > timestamp('2020-01-01T00:30:00Z')",
        message: 'time',
      },

      {
        rule: "optional.of(1).hasValue() && optional.none().orValue(2) == 2 && {'a': 1}.?b.orValue(3) == 3 && [1][?3].orValue(4) == 4",
        message: 'optionals',
      },
      { rule: "1 in [1, 2] && 'a' in {'a': 1} && !(3 in [1])", message: 'in' },
      {
        rule: '[1, 2].exists(x, x > 1) && [[1], []].all(x, x.size() < 2) && type(1) == int && dyn(1) == 1.0',
        message: 'macros',
      },
      {
        rule: 'self.size() < 3 ? false : (5 % 3 == 2 && 7 / 2 == 3 && -7 / 2 == -3 && 2.0 * 1.5 == 3.0)',
        message: 'arithmetic',
      },
    ],
  },
};

export const rules: SchemaCases = {
  name: 'rules',
  schema: {
    type: 'object',
    properties: {
      metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 40 } } },
      spec: { type: 'object', properties: fields },
    },
    'x-kubernetes-validations': [
      { rule: "self.metadata.name != 'forbidden'", fieldPath: '.metadata.name', message: 'this name is taken' },
      {
        rule: "self.kind == 'Sample' && (!has(self.spec) || !has(self.spec.plain) || self.spec.plain != 'about')",
        message: 'not about',
      },
    ],
  },
  loose: { type: 'object', properties: { spec: loosen({ type: 'object', properties: fields }) } },
  cases: [
    ...broken('plain', 'b'),
    ...broken('worded', 'b'),
    ...broken('lines', 'c'),
    ...broken('broken', 'x'),
    ...broken('brokenUnworded', 'x'),
    ...broken('reasons', { a: 'x', c: 'x' }),
    ...broken('place', { 'foo.bar': 'b', inner: { deep: 'b' } }),
    ...broken('ratio', 3),
    ...broken('count', 3),
    ...broken('count', 5),
    ...broken('sum', { a: 1, b: 2 }),
    ...broken('absent', {}),
    ...broken('items', [
      { name: 'b', size: 0 },
      { name: 'c', size: 2 },
    ]),
    ...broken('items', [{ name: 'a' }]),
    ...broken('keyed', [{ name: 'bad', size: 0 }]),
    ...broken('named', { b: 'x' }),
    ...broken('when', '2019-01-01T00:00:00Z'),
    ...broken('when', '2021-01-01T00:00:00Z'),
    ...broken('every', '30s'),
    ...broken('every', '1h'),
    ...broken('port', 0),
    ...broken('port', 'no'),
    ...broken('port', 'http'),
    ...broken('maybe', null),
    ...broken('maybe', 'b'),
    ...broken('reserved', { namespace: 'a', 'a-b': 'b', 'a/b': 'c', a__b: 'd', if: 'e' }),
    ...broken('reserved', { namespace: 'b' }),
    ...broken('functions', 'aa-12'),
    ...broken('functions', 'Nope'),
    ...broken('plain', 'about'),
    { name: 'a rule of the name', spec: {}, metadata: { name: 'forbidden' } },
    { name: 'a rule is not judged beside a wrong type', spec: { plain: 'b', count: 'x' } },
    { name: 'a rule is not judged beside a text that is too long', spec: { plain: 'b'.repeat(30) } },
    {
      name: 'a rule is not judged beside too many items',
      spec: { plain: 'b', keyed: ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => ({ name })) },
    },
    { name: 'a rule is judged beside a duplicate', spec: { plain: 'b', keyed: [{ name: 'a' }, { name: 'a' }] } },
    { name: 'a rule is judged beside one that fails', spec: { plain: 'b', broken: 'x' } },
    { name: 'an immutable value may be set', old: {}, spec: { fixed: 'a' } },
    { name: 'an immutable value may be removed', old: { fixed: 'a' }, spec: {} },
    { name: 'an immutable value may not change', old: { fixed: 'a' }, spec: { fixed: 'b' } },
    { name: 'an immutable value may stay', old: { fixed: 'a' }, spec: { fixed: 'a' } },
    { name: 'optional oldSelf on create', spec: { grows: 5 } },
    { name: 'optional oldSelf on update', old: { grows: 5 }, spec: { grows: 4 } },
    { name: 'optional oldSelf on update, growing', old: { grows: 2 }, spec: { grows: 3 } },
    { name: 'a bad value may stay', old: { plain: 'b' }, spec: { plain: 'b' } },
    {
      name: 'a bad value may stay while another changes',
      old: { plain: 'b', worded: 'a' },
      spec: { plain: 'b', worded: 'ab' },
    },
    { name: 'a bad value may not become another bad value', old: { plain: 'b' }, spec: { plain: 'c' } },
    {
      name: 'a bad object may stay while a neighbour changes',
      old: { sum: {}, plain: 'a' },
      spec: { sum: {}, plain: 'ab' },
    },
    {
      name: 'a bad object may not stay bad when it changes inside',
      old: { reasons: { a: 'x' } },
      spec: { reasons: { a: 'x', c: 'y' } },
    },
    {
      name: 'a bad element of a list map may stay',
      old: { keyed: [{ name: 'bad', size: 0 }] },
      spec: {
        keyed: [
          { name: 'new', size: 1 },
          { name: 'bad', size: 0 },
        ],
      },
    },
    {
      name: 'a bad element of a list map changes inside',
      old: { keyed: [{ name: 'bad', size: 1 }] },
      spec: { keyed: [{ name: 'bad', size: 2 }] },
    },
    {
      name: 'an element of a list map never shrinks',
      old: {
        keyed: [
          { name: 'a', size: 3 },
          { name: 'b', size: 3 },
        ],
      },
      spec: {
        keyed: [
          { name: 'b', size: 4 },
          { name: 'a', size: 2 },
        ],
      },
    },
    {
      name: 'a bad element of a plain list may stay while the list does',
      old: { items: [{ name: 'x', size: 0 }], plain: 'a' },
      spec: { items: [{ name: 'x', size: 0 }], plain: 'ab' },
    },
    {
      name: 'a bad element of a plain list is new when the list changes',
      old: { items: [{ name: 'a', size: 0 }] },
      spec: {
        items: [
          { name: 'a', size: 0 },
          { name: 'b', size: 1 },
        ],
      },
    },
    { name: 'a bad map value may stay', old: { named: { a: 'x' } }, spec: { named: { a: 'x', ab: 'y' } } },
  ],
};

function broken(field: string, value: unknown): SchemaCase[] {
  return [{ name: `rule of ${field}: ${JSON.stringify(value)}`, spec: { [field]: value } }];
}

/** The schema as it was before anybody wrote a rule. */
function loosen({ 'x-kubernetes-validations': _, ...schema }: Schema): Schema {
  return {
    ...schema,
    ...(schema.properties
      ? {
          properties: Object.fromEntries(Object.entries(schema.properties).map(([key, child]) => [key, loosen(child)])),
        }
      : {}),
    ...(schema.items ? { items: loosen(schema.items) } : {}),
    ...(typeof schema.additionalProperties === 'object'
      ? { additionalProperties: loosen(schema.additionalProperties) }
      : {}),
  };
}

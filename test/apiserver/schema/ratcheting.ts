// Objects that show what an update may keep that was bad before a schema was tightened.
import type { Schema } from '../../../infra/apiserver/schema/schema.ts';
import type { SchemaCases } from './case.ts';

const text = { type: 'string' } as const;

/** The same fields, without bounds and with them. */
const loose: Schema = {
  type: 'object',
  properties: {
    name: text,
    choice: text,
    count: { type: 'integer' },
    when: text,
    tags: { type: 'array', items: text },
    inner: { type: 'object', properties: { a: text, b: text } },
    list: { type: 'array', items: { type: 'object', properties: { name: text, value: text } } },
    keyed: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: { type: 'object', required: ['name'], properties: { name: text, value: text } },
    },
    map: { type: 'object', additionalProperties: text },
    nothing: { ...text, nullable: true },
    deep: { type: 'object', properties: { inner: { type: 'object', properties: { a: text, b: text } } } },
  },
};

const short = { type: 'string', maxLength: 3 } as const;

const tight: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^a' },
    choice: { type: 'string', enum: ['a'] },
    count: { type: 'integer', maximum: 3 },
    when: { type: 'string', format: 'date-time' },
    tags: { type: 'array', items: short, maxItems: 2, 'x-kubernetes-list-type': 'set' },
    inner: { type: 'object', required: ['a'], properties: { a: text, b: text } },
    list: { type: 'array', maxItems: 2, items: { type: 'object', properties: { name: text, value: short } } },
    keyed: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: { type: 'object', required: ['name', 'value'], properties: { name: text, value: short } },
    },
    map: { type: 'object', maxProperties: 2, additionalProperties: short },
    nothing: text,
    deep: {
      type: 'object',
      properties: { inner: { type: 'object', required: ['a'], properties: { a: text, b: short } } },
    },
  },
};

const bad = {
  name: 'x',
  choice: 'x',
  count: 5,
  when: 'never',
  tags: ['long-tag', 'long-tag', 'c'],
  inner: { b: 'b' },
  list: [{ name: 'a', value: 'long' }, { name: 'b' }, { name: 'c' }],
  keyed: [{ name: 'a', value: 'long' }, { name: 'b' }],
  map: { a: 'long', b: 'b', c: 'c' },
  deep: { inner: { b: 'long' } },
};

export const ratcheting: SchemaCases = {
  name: 'ratcheting',
  loose: { type: 'object', properties: { spec: loose } },
  schema: { type: 'object', properties: { spec: tight } },
  cases: [
    { name: 'all of it is refused on create', spec: bad },
    { name: 'all of it may stay', old: bad, spec: bad },
    { name: 'all of it may stay while a label changes', old: bad, spec: bad, metadata: { labels: { a: 'b' } } },
    { name: 'one bad value changes', old: bad, spec: { ...bad, name: 'y' } },
    { name: 'one bad value is repaired', old: bad, spec: { ...bad, name: 'a' } },
    { name: 'a bad value is removed', old: bad, spec: { ...bad, choice: undefined } },
    { name: 'a bad value is new', old: { ...bad, count: undefined }, spec: bad },
    { name: 'another bad number', old: bad, spec: { ...bad, count: 6 } },
    { name: 'another bad format', old: bad, spec: { ...bad, when: 'ever' } },
    { name: 'a list that is too long grows', old: bad, spec: { ...bad, tags: [...bad.tags, 'd'] } },
    { name: 'a list that is too long shrinks', old: bad, spec: { ...bad, tags: ['long-tag', 'c', 'd'] } },
    {
      name: 'duplicates that were there may stay while another value changes',
      old: bad,
      spec: { ...bad, choice: 'a' },
    },
    { name: 'a duplicate that is new', old: { ...bad, tags: ['a'] }, spec: { ...bad, tags: ['a', 'a'] } },
    { name: 'a member that is required now, beside a change', old: bad, spec: { ...bad, inner: { b: 'c' } } },
    {
      name: 'a plain list in which another element changes',
      old: bad,
      spec: { ...bad, list: [{ name: 'a', value: 'long' }, { name: 'd' }] },
    },
    {
      name: 'a list map in which another element changes',
      old: bad,
      spec: {
        ...bad,
        keyed: [
          { name: 'b', value: 'b' },
          { name: 'a', value: 'long' },
        ],
      },
    },
    {
      name: 'a list map in which an element is new and bad',
      old: bad,
      spec: { ...bad, keyed: [...bad.keyed, { name: 'c', value: 'long' }] },
    },
    {
      name: 'a list map in which a bad element changes inside',
      old: bad,
      spec: { ...bad, keyed: [{ name: 'a', value: 'longer' }, { name: 'b' }] },
    },
    { name: 'a map in which another value changes', old: bad, spec: { ...bad, map: { a: 'long', b: 'c' } } },
    { name: 'a map that is too large changes', old: bad, spec: { ...bad, map: { ...bad.map, c: 'd' } } },
    { name: 'something bad deep below stays', old: bad, spec: { ...bad, deep: { inner: { a: 'a', b: 'long' } } } },
    { name: 'null that is no longer allowed', old: { nothing: null }, spec: { nothing: null } },
    {
      name: 'null that is no longer allowed, beside a change',
      old: { nothing: null },
      spec: { nothing: null, name: 'a' },
    },
  ],
};

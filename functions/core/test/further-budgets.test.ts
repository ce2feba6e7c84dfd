import { createHash } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { furtherScopeId } from '../keys/further-budgets.ts';

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const modelScopeId = (of: typeof hash, key: string, name: string) =>
  furtherScopeId(of, key, { model: name, duration: '1d' });
const KEY = '0190a0b0-0000-7000-8000-000000000001';

test('a model of a key is a scope of its own, whose id is always the same UUID', () => {
  expect(modelScopeId(hash, KEY, 'gpt')).toBe(modelScopeId(hash, KEY, 'gpt'));
  expect(modelScopeId(hash, KEY, 'gpt')).toMatchInlineSnapshot(`"0fbb13b5-4221-8524-816e-e14e24f048fd"`);
  const property = fc.property(fc.uuid(), fc.string(), (key, model) => {
    expect(modelScopeId(hash, key, model)).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });
  fc.assert(property);
});

test('no two models share a scope, nor do two keys', () => {
  const names = ['gpt', 'gpt ', 'Gpt', '__proto__', 'constructor', '', 'a/b', '\u{1f600}'];
  const ids = ['one', 'two', 'one gpt'].flatMap((key) => names.map((name) => modelScopeId(hash, key, name)));
  expect(new Set(ids).size).toBe(ids.length);
});

test('a further window of a key is a scope of its own, by its length', () => {
  const ofWindow = (duration: string) => furtherScopeId(hash, KEY, { duration });
  expect(ofWindow('1h')).toBe(ofWindow('1h'));
  expect(new Set([ofWindow('1h'), ofWindow('2h'), modelScopeId(hash, KEY, '1h')]).size).toBe(3);
});

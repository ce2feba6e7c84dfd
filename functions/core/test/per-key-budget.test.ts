import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyRecord } from '../../../test/gateway/instance.ts';
import { withPerKey } from '../keys/per-key-budget.ts';
import type { Budget, KeyPolicy, NamespacePolicy } from '../ports/policy.ts';

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const BUDGET: Budget = { limit: '5', duration: '1d', alignment: 'Rolling', sinceGeneration: 3 };

interface Differences {
  readonly key?: Partial<KeyPolicy>;
  readonly namespace?: Partial<NamespacePolicy>;
  readonly budget?: Partial<Budget>;
  readonly holderUid?: string;
}

function recordWith({ key = {}, namespace = {}, budget = {}, holderUid = 'uid' }: Differences = {}) {
  const scope: NamespacePolicy = {
    scopeId: 'namespace-scope',
    kind: 'namespace',
    name: 'research',
    blocked: false,
    models: [],
    anchor: 0,
    chargedScopeIds: [],
    perKey: { budget: { ...BUDGET, ...budget } },
    ...namespace,
  };
  return withPerKey({ ...keyRecord(key, [scope]), holderUid }, hash);
}
const scopeIdOf = (differences?: Differences) => recordWith(differences).scopes.at(-1)?.scopeId;

test('a key gets the budget as a further scope, counted from the scope and the anchor of the key', () => {
  const { key, scopes } = recordWith({ key: { anchor: 77 } });
  expect(scopes.slice(0, 2).map(({ scopeId }) => scopeId)).toEqual([key.scopeId, 'namespace-scope']);
  expect(scopes.slice(2)).toEqual([
    {
      scopeId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      kind: 'key',
      name: key.name,
      blocked: false,
      models: [],
      budget: { limit: '5', duration: '1d', alignment: 'Rolling' },
      anchor: 77,
      countedFrom: key.scopeId,
    },
  ]);
});

test('the scope stays the same while the key is charged to it, and is another one after a time without', () => {
  const first = scopeIdOf();
  for (const same of [{ budget: { limit: '6' } }, { key: { models: ['gpt'], name: 'renamed' } }])
    expect(scopeIdOf(same)).toBe(first);
  const others = [
    { budget: { sinceGeneration: 4 } },
    { budget: { sinceGeneration: undefined } },
    { budget: { duration: '2d' } },
    { budget: { alignment: 'Calendar' as const } },
    { holderUid: 'another' },
    { namespace: { scopeId: 'another' } },
    { key: { scopeId: 'another' } },
  ].map(scopeIdOf);
  expect(new Set([first, ...others]).size).toBe(others.length + 1);
});

test('a record whose namespace adds nothing stays the same object', () => {
  const record = keyRecord();
  expect(withPerKey(record, hash)).toBe(record);
});

// Do the policies say all that the CRDs say by rule, and the one thing that needs an annotation?
import { expect, test } from 'vitest';
import { kinds } from './kinds.ts';
import { toManifest } from './manifest.ts';
import { toPolicies, toPolicy } from './policy.ts';
import { rulesBelow } from './policy-rules.ts';

test.each(kinds)('the policy of $kind repeats every rule of its CRD, in the same words', (kind) => {
  const manifest = JSON.stringify(toManifest(kind));
  const ofCrd = [...manifest.matchAll(/"message":("(?:[^"\\]|\\.)*")/g)].map(
    ([, text = '""']) => JSON.parse(text) as string,
  );
  const ofPolicy = toPolicy(kind).spec.validations.map(({ message }) => message);
  const extra = kind.kind === 'GatewayInstance' ? 1 : 0;
  expect(ofPolicy).toHaveLength(ofCrd.length + extra);
  for (const message of ofCrd)
    expect(
      ofPolicy.some((text) => text.endsWith(`: ${message}`)),
      message,
    ).toBe(true);
});

test('every policy is bound, and refuses', () => {
  const objects = toPolicies() as ReadonlyArray<{
    kind: string;
    metadata: { name: string };
    spec: { policyName?: string; validationActions?: string[] };
  }>;
  const named = (kind: string) => objects.filter((one) => one.kind === kind);
  expect(named('ValidatingAdmissionPolicy')).toHaveLength(kinds.length);
  expect(named('ValidatingAdmissionPolicyBinding').map(({ spec }) => spec.policyName)).toEqual(
    named('ValidatingAdmissionPolicy').map(({ metadata }) => metadata.name),
  );
  for (const { spec } of named('ValidatingAdmissionPolicyBinding')) expect(spec.validationActions).toEqual(['Deny']);
});

test('a rule below a list, a map and optional fields is asked of every entry that is there, and of the stored one', () => {
  const rule = { rule: 'self.a < self.b', message: 'wrong', fieldPath: '.a' };
  const entry = { type: 'object', properties: {}, 'x-kubernetes-validations': [rule] } as const;
  const list = { type: 'array', items: entry, 'x-kubernetes-list-map-keys': ['name'] } as const;
  const [inList, inMap, change] = rulesBelow({
    type: 'object',
    required: ['list'],
    properties: {
      list,
      map: { type: 'object', additionalProperties: entry },
      fixed: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'immutable' }] },
    },
  });
  const same = (one: string, other: string) =>
    `has(${one}.a) == has(${other}.a) && (!has(${one}.a) || ${one}.a == ${other}.a)`;
  expect(inList?.path).toBe('spec.list[].a');
  expect(inList?.expression).toBe(
    "object.spec.list.all(entry1, ((entry1.a < entry1.b) || (request.operation == 'UPDATE' && has(oldObject.spec.list) && " +
      `oldObject.spec.list.exists(old1, old1.name == entry1.name && !(old1.a < old1.b) && ${same('entry1', 'old1')}))))`,
  );
  const value = 'object.spec.map[key1]';
  const old = 'oldObject.spec.map[key1]';
  expect(inMap?.expression).toBe(
    `(!has(object.spec.map) || object.spec.map.all(key1, ((${value}.a < ${value}.b) || (request.operation == 'UPDATE' && ` +
      `has(oldObject.spec.map) && key1 in oldObject.spec.map && !(${old}.a < ${old}.b) && ${same(value, old)}))))`,
  );
  expect(change?.expression).toBe(
    "(!has(object.spec.fixed) || !(request.operation == 'UPDATE' && has(oldObject.spec.fixed) && !(object.spec.fixed == oldObject.spec.fixed)))",
  );
});

// Are mistakes that an older CRD, or a cluster without CEL, let in said in conditions as admission says them?
import { describe, expect, test } from 'vitest';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { type Kind, kinds, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { cases } from '#crds/test/cases/all.ts';
import { type Case, objectsOf } from '#crds/test/cases/case.ts';
import { createHarness, type Status } from '../reconcile/harness.ts';
import { ask, createWorld, depsOf, GOOD, objectOf, requestOf } from './fixtures.ts';
import { sentencesOf } from './sentences.ts';

const kindOf = (name: string): Kind => kinds.find(({ kind }) => kind === name) ?? virtualKeys;
const conditionOf = ({ conditions = [] }: Status, type: string) => conditions.find((one) => one.type === type);

const refused: readonly Case[] = cases.filter(({ findings, stored }) => findings.length > 0 && stored === undefined);

function storedOf(one: Case): KubeObject {
  const { metadata, spec } = objectsOf(one).object;
  const { apiVersion, kind } = kindOf(one.kind);
  // JSON knows no undefined.
  return JSON.parse(JSON.stringify({ apiVersion, kind, metadata: { namespace: 'default', ...metadata }, spec }));
}

describe('what one object proves wrong by itself is said by reconcile as admission says it', () => {
  test.each(refused)('$kind $what', async (one) => {
    const object = storedOf(one);
    const answer = await ask(depsOf((await createWorld()).cluster), '/mutate', requestOf(object));
    const harness = createHarness();
    await harness.cluster.create(kindOf(one.kind), object);
    expect(await harness.resync()).toMatchObject({ failed: {} });
    const condition = conditionOf(await harness.status(kindOf(one.kind), object.metadata.name), 'SpecValid');
    expect(condition).toMatchObject({ status: 'False', reason: one.findings[0]?.[0] });
    expect(sentencesOf(condition?.message ?? '')).toEqual(sentencesOf(answer.status?.message ?? 'it was let in'));
  });
});

test.each([
  ['VirtualKey', 'auth.gateway-operator.dev/rotate', ' '],
  ['GatewayInstance', 'instance.gateway-operator.dev/deletion-share', '101%'],
  ['GatewayInstance', 'instance.gateway-operator.dev/adopt-ledger', 'the old one'],
] as const)('an annotation of a %s that is not understood is said too (%s)', async (kind, annotation, text) => {
  const metadata = { namespace: 'default', annotations: { [annotation]: text } };
  const object = objectOf(kind, GOOD[kind], metadata);
  const answer = await ask(depsOf((await createWorld()).cluster), '/mutate', requestOf(object));
  const harness = createHarness();
  await harness.cluster.create(kindOf(kind), object);
  await harness.resync();
  const condition = conditionOf(await harness.status(kindOf(kind), object.metadata.name), 'SpecValid');
  expect(condition).toMatchObject({ status: 'False', reason: 'InvalidAnnotation', message: answer.status?.message });
});

test('several mistakes stand below each other in a condition, and in one line in an event', async () => {
  const harness = createHarness();
  const spec = { ...GOOD.VirtualKey, keyAlias: ' ', maxBudget: 'ten' };
  await harness.cluster.create(virtualKeys, objectOf('VirtualKey', spec, { namespace: 'default' }));
  await harness.resync();
  const condition = conditionOf(await harness.status(virtualKeys, 'billing'), 'Ready')?.message ?? '';
  expect(condition).toMatch(
    /^- spec\.keyAlias: Invalid value: " ": .+\n- spec\.maxBudget: Invalid value: "ten": [^\n]+$/,
  );
  const [event] = harness.cluster.objects(RESOURCES.events);
  expect(event?.message).toMatch(
    /^\(1\) spec\.keyAlias: Invalid value: " ": [^\n]+ \(2\) spec\.maxBudget: Invalid value: "ten": [^\n]+$/,
  );
});

test('what can be read continues working, and says so until it is repaired; what cannot is not ready', async () => {
  const harness = createHarness();
  const from = { namespace: 'default' };
  const instance = { instanceRef: { namespace: 'default', name: 'nobody' } };
  await harness.cluster.create(
    users,
    objectOf('User', { ...GOOD.User, connectionRef: instance, keyAlias: undefined }, from),
  );
  const key = { ...GOOD.VirtualKey, connectionRef: instance };
  await harness.cluster.create(virtualKeys, objectOf('VirtualKey', { ...key, softBudget: '11' }, from));
  await harness.resync();
  const conditionTextOf = async (kind: Kind, name: string, type: string) => {
    const { status, reason } = conditionOf(await harness.status(kind, name), type) ?? {};
    return status === undefined ? undefined : `${status} ${reason}`;
  };
  expect(await conditionTextOf(users, 'alice', 'SpecValid')).toBe('False AutoCreateKeyNeedsField');
  expect(await conditionTextOf(users, 'alice', 'Ready')).toBe('False InstanceNotFound');
  expect(await conditionTextOf(virtualKeys, 'billing', 'SpecValid')).toBe('False SoftBudgetAboveMaxBudget');
  expect(await conditionTextOf(virtualKeys, 'billing', 'ModelsReady')).toBe('Unknown InstanceNotFound');

  await harness.edit(virtualKeys, 'billing', { spec: { softBudget: '10' } });
  await harness.resync();
  expect(await conditionTextOf(virtualKeys, 'billing', 'SpecValid')).toBeUndefined();

  await harness.edit(virtualKeys, 'billing', { spec: { maxBudget: 'ten', softBudget: null } });
  await harness.resync();
  expect(await conditionTextOf(virtualKeys, 'billing', 'SpecValid')).toBe('False Malformed');
  expect(await conditionTextOf(virtualKeys, 'billing', 'Ready')).toBe('False InvalidSpec');
  expect(await conditionTextOf(virtualKeys, 'billing', 'ModelsReady')).toBe('Unknown InvalidSpec');
});

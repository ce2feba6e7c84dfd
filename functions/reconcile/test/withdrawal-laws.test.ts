// Does every withdrawal end or block the values that it concerns, whatever tenants do to their VirtualKeys before?
import { expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { AUTH_API_VERSION, FINALIZER, RETAINED_LABEL } from '#crds/names/group.ts';
import { createHarness, type Harness, sha256 } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets, makeTeam, makeUser } from '../../../test/reconcile/objects.ts';
import { random } from '../../../test/support/random.ts';
import { runs } from '../../../test/support/runs.ts';

/** Causes that mean: somebody withdrew the VirtualKey. */
const WITHDRAWN: ReadonlySet<string | undefined> = new Set([
  'Blocked',
  'Deleting',
  'InvalidSpec',
  'NamespaceNotAllowed',
]);
const TENANT = 'tenant';
const KEYS = ['one', 'two', 'three'];

/** What tenants and the platform team do to VirtualKeys, their namespace and their owners. */
function withdrawals(harness: Harness, key: string): ReadonlyArray<() => Promise<unknown>> {
  const edit = (patch: Readonly<Record<string, unknown>>) => harness.edit(virtualKeys, key, patch, TENANT);
  const finalize = (...finalizers: string[]) => edit({ metadata: { finalizers } });
  const allow = (from: string) => harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from } } });
  const own = async (name: string) => {
    const uid = (await harness.get(users, name, TENANT))?.metadata.uid ?? 'nothing';
    const owner = { apiVersion: AUTH_API_VERSION, kind: 'User', name, uid };
    await edit({ metadata: { ownerReferences: [owner] } });
  };
  const refs = [{}, { teamRef: { name: 'research' } }, { userRef: { name: 'bob' } }];
  const create = (index: number, deletionPolicy: string) =>
    harness.apply(makeKey({ ...refs[index], deletionPolicy }, key, TENANT));
  return [
    () => edit({ spec: { blocked: true } }),
    () => edit({ spec: { blocked: false } }),
    () => edit({ spec: { deletionPolicy: 'Retain' } }),
    () => edit({ spec: { budgetDuration: '99999999d' } }),
    () => edit({ spec: { budgetDuration: '30d' } }),
    () => finalize('example.com/x'),
    () => finalize(FINALIZER, 'example.com/x'),
    () => finalize(FINALIZER, ...Array.from({ length: 80 }, (_, index) => `example.com/${'x'.repeat(240)}${index}`)),
    () => finalize(),
    () => own('bob'),
    () => harness.remove(virtualKeys, key, TENANT),
    () => create(0, 'Retain'),
    () => create(1, 'Retain'),
    () => create(2, 'Delete'),
    () => harness.remove(RESOURCES.secrets, `${key}-key`, TENANT),
    () => harness.remove(teams, 'research', TENANT),
    () => harness.remove(users, 'bob', TENANT),
    () => harness.edit(users, 'bob', { metadata: { finalizers: ['example.com/x'] } }, TENANT),
    () => harness.apply(makeTeam({}, 'research', TENANT), makeUser({ autoCreateKey: false }, 'bob', TENANT)),
    () => allow('Same'),
    () => allow('All'),
    () => harness.trigger('VirtualKey', key, TENANT),
    () => harness.trigger('GatewayInstance', 'main'),
    () => harness.resync(),
  ];
}

/** The values that each VirtualKey has had, by its uid, and all values. */
function createValues(harness: Harness) {
  const values = new Map<string, Set<string>>();
  const all = new Set<string>();
  return {
    all,
    of: (uid = '') => values.get(uid) ?? new Set<string>(),
    see: async () => {
      for (const key of KEYS) {
        const { uid } = (await harness.get(virtualKeys, key, TENANT))?.metadata ?? {};
        const value = await harness.value(`${key}-key`, TENANT);
        const { keyID } = await harness.status(virtualKeys, key, TENANT);
        if (uid === undefined || value === undefined || keyID !== sha256(value)) continue;
        values.set(uid, (values.get(uid) ?? new Set()).add(value));
        all.add(value);
      }
    },
  };
}

/** Values that a gateway finds with a policy that is not blocked. */
async function serving(harness: Harness, values: Iterable<string>): Promise<ReadonlyArray<string>> {
  const found = await Promise.all([...values].map(async (value) => [value, await harness.policy(value)] as const));
  return found.flatMap(([value, policy]) => (policy?.blocked === false ? [value] : []));
}

/** Whether another finalizer keeps an object that the operator has released: its value may work by `Retain`. */
async function isRetained(harness: Harness, key: string): Promise<boolean> {
  const { metadata, spec } = ((await harness.get(virtualKeys, key, TENANT)) ?? {}) as Partial<VirtualKey>;
  const isReleased = metadata?.deletionTimestamp !== undefined && !metadata.finalizers?.includes(FINALIZER);
  const labels = (await harness.get(RESOURCES.secrets, `${key}-key`, TENANT))?.metadata.labels;
  return isReleased && spec?.blocked !== true && labels?.[RETAINED_LABEL] === 'true';
}

test('a VirtualKey that is inactive because it was withdrawn has no value that works, and an active one has', async () => {
  const count = { withdrawn: 0, active: 0, expelled: 0 };
  for (let seed = 0; seed < runs(60); seed += 1) {
    const next = random(seed);
    const pick = <T>(all: ReadonlyArray<T>): T => all[Math.floor(next() * all.length)] as T;
    const harness = createHarness();
    const values = createValues(harness);
    await harness.apply(...makeSecrets(), makeInstance());
    await harness.apply(makeTeam({}, 'research', TENANT), makeUser({ autoCreateKey: false }, 'bob', TENANT));
    for (const key of KEYS) await harness.apply(makeKey({}, key, TENANT));
    for (let step = 0; step < 12; step += 1) {
      // Not everything can be done to every object: one that is gone is not edited.
      for (let edit = 0; edit < 3; edit += 1) await pick(withdrawals(harness, pick(KEYS)))().catch(() => undefined);
      harness.clock.pass(60_000);
      for (let run = 0; run < 2; run += 1) expect((await harness.resync()).failed).toEqual({});
      await values.see();
      const { spec } = (await harness.get(gatewayInstances, 'main')) as unknown as Partial<GatewayInstance>;
      if (spec?.allowedNamespaces?.from === 'Same') {
        count.expelled += 1;
        expect({ seed, step, working: await serving(harness, values.all) }).toEqual({ seed, step, working: [] });
      }
      for (const key of KEYS) {
        const { metadata } = (await harness.get(virtualKeys, key, TENANT)) ?? {};
        const { conditions, isActive } = await harness.status(virtualKeys, key, TENANT);
        const reason = conditions?.find(({ type }) => type === 'Ready')?.reason;
        const working = await serving(harness, values.of(metadata?.uid));
        const isWithdrawn = WITHDRAWN.has(reason) && !(await isRetained(harness, key));
        if (isWithdrawn) expect({ seed, step, key, reason, working }).toEqual({ seed, step, key, reason, working: [] });
        if (isActive === true) expect({ seed, step, key, working }).toMatchObject({ working: { length: 1 } });
        count.withdrawn += Number(isWithdrawn);
        count.active += Number(isActive === true);
      }
    }
  }
  for (const counted of Object.values(count)) expect(counted).toBeGreaterThan(20);
}, 120_000);

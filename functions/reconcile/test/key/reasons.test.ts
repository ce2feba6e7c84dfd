// Law 8 of DESIGN 6, for keys that do not work: a resync reads only the Secrets of keys whose cause may be in the
// Secret.
import { expect, test } from 'vitest';
import { REASONS, type Reason, rowOf } from '#core/conditions/reasons.ts';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { createHarness, type Harness } from '../../../../test/reconcile/harness.ts';
import {
  makeInstance,
  makeKey,
  makeSecret,
  makeSecrets,
  makeTeam,
  makeUser,
} from '../../../../test/reconcile/objects.ts';
import { PROCESS_LIMITS } from '../../limits.ts';

const COUNT = 12;
const MINUTE = 60_000;
const names = Array.from({ length: COUNT }, (_, index) => `k${index}`);
const keysWith = (spec: object, namespace?: string) => names.map((name) => makeKey(spec, name, namespace));
const OTHER = { connectionRef: { instanceRef: { name: 'other', namespace: 'default' } } };

type Prepare = (harness: Harness) => Promise<void>;

/** Brings twelve keys into the state of each reason. Undefined: no VirtualKey can have the reason. */
const SCENARIOS: Readonly<Partial<Record<Reason, Prepare | undefined>>> = {
  KeyConflict: undefined,
  DatabaseNotMigrated: undefined,
  LedgerNotAdopted: undefined,
  WorkloadRefused: undefined,
  InvalidSpec: async (harness) => {
    await harness.apply(...keysWith({}));
    for (const name of names) await harness.edit(virtualKeys, name, { spec: { budgetDuration: '99999999d' } });
  },
  ReconcileFailed: async (harness) => {
    await harness.apply(...keysWith({}));
    harness.cluster.inject(({ verb, resource, name }) => {
      if (verb === 'create' && resource === RESOURCES.secrets && name?.startsWith('k')) throw new Error('broken');
      return undefined;
    });
  },
  SecretConflict: async (harness) => {
    await harness.apply(...names.map((name) => makeSecret(`${name}-key`, { key: 'of somebody else' })));
    await harness.apply(...keysWith({}));
  },
  DatabaseUnreachable: async (harness) => {
    await harness.apply(...keysWith({}));
    await harness.resync();
    harness.onDatabase = (method) => {
      if (method === 'putScope') throw new DatabaseUnreachable('PostgreSQL is away');
    };
    for (const name of names) await harness.edit(virtualKeys, name, { spec: { maxBudget: '11' } });
  },
  InstanceNotFound: (harness) =>
    harness.apply(...keysWith({ connectionRef: { instanceRef: { name: 'none', namespace: 'default' } } })),
  InstanceNotReady: async (harness) => {
    harness.store = { ok: false, reason: 'StoreUnreachable', message: 'Redis is away' };
    await harness.apply(...keysWith({}));
  },
  NamespaceNotAllowed: async (harness) => {
    await harness.apply(...keysWith({}, 'team-a'));
    await harness.resync();
    await harness.edit(gatewayInstances, 'main', { spec: { allowedNamespaces: { from: 'Same' } } });
  },
  AliasTaken: async (harness) => {
    await harness.apply(makeKey({ keyAlias: 'wanted by all' }, 'first'));
    await harness.resync();
    await harness.apply(...keysWith({ keyAlias: 'wanted by all' }));
  },
  UserNotFound: (harness) => harness.apply(...keysWith({ userRef: { name: 'nobody' } })),
  UserOfOtherInstance: async (harness) => {
    await harness.apply(makeUser({ ...OTHER, autoCreateKey: false }), ...keysWith({ userRef: { name: 'alice' } }));
  },
  UserNotReady: async (harness) => {
    await harness.apply(makeUser({ autoCreateKey: false, userEmail: 'one@example.com' }, 'first'));
    await harness.resync();
    await harness.apply(makeUser({ autoCreateKey: false, userEmail: 'one@example.com' }));
    await harness.apply(...keysWith({ userRef: { name: 'alice' } }));
  },
  TeamNotFound: (harness) => harness.apply(...keysWith({ teamRef: { name: 'nobody' } })),
  TeamOfOtherInstance: (harness) => harness.apply(makeTeam(OTHER), ...keysWith({ teamRef: { name: 'research' } })),
  TeamNotReady: async (harness) => {
    await harness.apply(makeTeam({ teamAlias: 'one' }, 'first'));
    await harness.resync();
    await harness.apply(makeTeam({ teamAlias: 'one' }), ...keysWith({ teamRef: { name: 'research' } }));
  },
  Blocked: (harness) => harness.apply(...keysWith({ blocked: true })),
  Expired: async (harness) => {
    await harness.apply(...keysWith({ duration: '1m' }));
    await harness.resync();
    harness.clock.pass(2 * MINUTE);
  },
  BudgetExceeded: (harness) => harness.apply(...keysWith({ maxBudget: '0' })),
  PolicyViolated: async (harness) => {
    await harness.edit(gatewayInstances, 'main', { spec: { keyPolicies: [{ name: 'a', models: ['free'] }] } });
    await harness.apply(...keysWith({ models: ['small'] }));
  },
  ModelNotServed: (harness) => harness.apply(...keysWith({ models: ['nothing'] })),
};

const scenarios = Object.entries(SCENARIOS).flatMap(([reason, prepare]) =>
  prepare === undefined ? [] : [[reason, prepare] as const],
);

test('each reason that blocks a VirtualKey or whose cause is outside its Secret has a scenario', () => {
  const tested = Object.entries(REASONS).flatMap(([reason, { needsNoSecretRead, isBlocking }]) =>
    needsNoSecretRead || isBlocking ? [reason] : [],
  );
  expect(tested.filter((reason) => !Object.hasOwn(SCENARIOS, reason))).toEqual([]);
});

test.each(scenarios)('keys that are not ready for the reason %s', async (reason, prepare) => {
  const harness = createHarness({
    limits: { ...PROCESS_LIMITS, parts: 1000, changedKeys: 100, secrets: 5, lookUps: 5, triggers: 1, resyncs: 1 },
  });
  await harness.apply(...makeSecrets(), makeInstance(), makeInstance({}, 'other'));
  await harness.resync();
  await prepare(harness);
  await harness.resync();
  await harness.resync();
  const reads = new Map<string, number>();
  for (let minute = 0; minute < 60; minute += 1) {
    harness.clock.pass(MINUTE);
    harness.cluster.calls.length = 0;
    await harness.resync();
    for (const { verb, resource, name = '' } of harness.cluster.calls)
      if (verb === 'get' && resource === RESOURCES.secrets && names.includes(name.replace(/-key$/, '')))
        reads.set(name, (reads.get(name) ?? 0) + 1);
  }
  const keys = harness.cluster.objects(virtualKeys).filter(({ metadata }) => names.includes(metadata.name));
  for (const { metadata } of keys)
    expect(await harness.ready(virtualKeys, metadata.name, metadata.namespace)).toBe(`False ${reason}`);
  expect(keys).toHaveLength(COUNT);
  for (const { metadata } of keys) {
    const policy = await harness.policy(await harness.value(`${metadata.name}-key`, metadata.namespace));
    if (policy !== undefined) expect(policy.blocked, metadata.name).toBe(rowOf(reason)?.isBlocking);
  }
  // A key whose spec cannot be read is not observed further.
  if (reason === 'InvalidSpec') return expect(reads.size).toBe(0);
  expect(reads.size).toBe(COUNT);
  const times = [...new Set(reads.values())];
  if (!rowOf(reason)?.needsNoSecretRead) return expect(Math.min(...times)).toBeGreaterThanOrEqual(60);
  // A run that tries an action on a key observes the key again afterwards.
  return expect(times).toEqual([reason === 'DatabaseUnreachable' ? 61 : 1]);
});

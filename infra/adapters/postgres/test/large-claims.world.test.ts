// Claims of one tenant whose policies are as large as they may be: whoever may write a VirtualKey can make them.
import { expect, onTestFinished, test } from 'vitest';
import { createBackends } from '#adapters/backends/backends.ts';
import type { KeyPolicy } from '#core/ports/policy.ts';
import { gatewayInstances, virtualKeys } from '#crds/kinds/kinds.ts';
import { validate } from '#crds/validation/validate.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createHarness } from '../../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../../test/reconcile/objects.ts';
import { sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase } from '../database.ts';

const CLAIMS = 1500;
/** A fifth of the heap of the chart's reconciler. */
const SHARE = 137.6 * 1024 * 1024;

/** `count` different texts of `length` characters, most of which take four bytes. */
const texts = (count: number, length: number) =>
  Array.from({ length: count }, (_, place) => `${place + 100}${'🙂'.repeat(length - 3)}`);
const LARGEST = {
  keyAlias: '🙂'.repeat(256),
  maxBudget: '999999999.999999999',
  budgetDuration: '876576h',
  budgetWindow: 'Calendar',
  budgetTimeZone: 'America/Argentina/ComodRivadavia',
  models: texts(128, 256),
  modelMaxBudget: Object.fromEntries(
    texts(64, 64).map((name) => [name, { maxBudget: '999999999.999999999', budgetDuration: '876576h' }]),
  ),
  budgets: texts(8, 3).map((_, place) => ({ maxBudget: '999999999.999999999', budgetDuration: `87657${place}h` })),
  tags: texts(8, 256),
  metadata: Object.fromEntries(texts(8, 256).map((name) => [name, ''])),
};

/** The policy that the reconciler makes of a VirtualKey after an edit of all its windows. */
async function reconcile(spec: object): Promise<KeyPolicy> {
  const harness = createHarness();
  await harness.apply(
    ...makeSecrets(),
    makeInstance(),
    makeKey({ ...spec, budgetWindow: 'Rolling', budgetTimeZone: undefined }),
  );
  await harness.resync();
  await harness.edit(virtualKeys, 'chat', { spec });
  await harness.resync();
  const uid = (await harness.get(gatewayInstances, 'main'))?.metadata.uid ?? '';
  const [claim] = await harness.database().claims(uid);
  const hash = claim?.values[0]?.hash ?? '';
  const found = await harness.database().policies(uid).find([hash]);
  return found.get(hash)?.key as KeyPolicy;
}

/** A database with the largest claim and 99 others, as a part of a run with this number of members reads it. */
async function writeLargest(members: number) {
  const key = makeKey(LARGEST);
  expect(validate(virtualKeys, key).violations).toEqual([]);
  const policy = await reconcile(LARGEST);
  expect(policy.furtherBudgets).toHaveLength(72);
  expect(policy.furtherBudgets?.every(({ sinceGeneration }) => sinceGeneration !== undefined)).toBe(true);
  const server = await sharedPostgres();
  const connection = await server.migratedDatabase();
  const backends = createBackends({
    clock: { now: () => Date.now() },
    maxReplyBytes: SHARE,
    openDatabase: (to) => createDatabase(to, { log: createMemoryLog() }),
    flush: async () => undefined,
    probeShared: async () => ({ ok: true }),
  });
  onTestFinished(() => backends.close());
  const { backends: own, end } = backends.begin(members);
  onTestFinished(() => end());
  const database = own.database(connection);
  const { namespace, name } = policy.object;
  const holder = { uid: 'u', namespace, name };
  await database.openInstance({ uid: 'i', namespace, name });
  const write = { instanceUid: 'i', kind: 'key', alias: policy.name, holder, policy, generation: 2 } as const;
  const others = Array.from({ length: 99 }, (_, place) => {
    const [alias, scopeId] = [`${place}${policy.name}`, crypto.randomUUID()];
    return { ...write, alias, policy: { ...policy, scopeId } };
  });
  const outcomes = await Promise.all([write, ...others].map((one) => database.putScope(one)));
  expect(new Set(outcomes)).toEqual(new Set(['written']));
  /** Copies the claim, with these members in addition to its digest. */
  const copy = (count: number, more: object) =>
    server.query(
      connection,
      `insert into gateway_operator.claim (alias, digest, ${COLUMNS})
       select n || right(alias, 250), digest || '${JSON.stringify(more)}', ${COLUMNS}
       from gateway_operator.claim, generate_series(101, $1::integer) n where scope_id = $2`,
      [count, policy.scopeId],
    );
  return { database, copy };
}

const COLUMNS = 'instance_uid, kind, holder_uid, holder_namespace, holder_name, policy';

test('the largest keys of one tenant are written, and fifteen hundred of them are read in the memory that there is for answers', async () => {
  const { database, copy } = await writeLargest(CLAIMS);
  await copy(CLAIMS, {});
  expect(await database.claims('i')).toHaveLength(CLAIMS);
});

test('retained keys, which no quota counts, need little memory, however large they are', async () => {
  const { database, copy } = await writeLargest(100);
  await copy(4 * CLAIMS, { retained: 'x'.repeat(253) });
  expect(await database.claims('i')).toHaveLength(4 * CLAIMS);
});

// A tenant that may do everything in its namespaces, under chaos: new keys, adoption, and edits of the key policy while
// requests run, gateways, Redis and PostgreSQL are killed. Two namespaces share a Team.
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { windowAt } from '#core/money/window.ts';
import type { Budget, NamespacePolicy, ScopePolicy } from '#core/ports/policy.ts';
import { namespaceHolder, type Recount } from '#core/ports/registry.ts';
import { random } from '../../support/random.ts';
import { strike } from './chaos.ts';
import { type Harness, type Key, makeKey, putNamespace, startHarness } from './harness.ts';
import { ask, type ClientReply, recovered } from './load.ts';
import { BY_LEDGER_ROW, MAX_RESERVATION, type Verification, verify } from './verify.ts';

export interface QuotaChaos {
  readonly seed: number;
  readonly millis: number;
}

export interface QuotaResult extends Verification {
  readonly events: ReadonlyArray<string>;
  /** What each namespace and the Team have spent of their limits. */
  readonly shares: Readonly<Record<string, string>>;
}

/** Nano-dollars. A reply costs about 30,000. Both namespaces together may spend more than their Team. */
const [OF_NAMESPACE, OF_TEAM, OF_KEY] = [3_000_000n, 5_000_000n, 10n ** 15n];
const [CLIENTS, FIRST_KEYS] = [12, 6];
const NAMES = ['lab', 'web'] as const;

export async function causeQuotaChaos({ seed, millis }: QuotaChaos): Promise<QuotaResult> {
  const harness = await startHarness(2, [OF_KEY]);
  try {
    const next = random(seed);
    const tenant = await createTenant(harness, next);
    const seen: ClientReply[] = [];
    let isOver = false;
    const client = async (number: number): Promise<void> => {
      for (let times = number; !isOver; times += 1) {
        const gateway = harness.gateways[times % 2];
        const key = tenant.keys[Math.floor(next() * tenant.keys.length)];
        if (gateway === undefined || key === undefined) return;
        const reply = await ask(gateway.url, key, times % 3 !== 0);
        seen.push(reply);
        if (reply.status !== 200) await pause(40);
      }
    };
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
    const edits = (async () => {
      while (!isOver) {
        await pause(100 + next() * 500);
        await tenant.edit();
      }
    })();
    const faults = await strike(harness, next, millis);
    isOver = true;
    await Promise.all([clients, edits]);
    // A key without limits shows that all gateways serve again.
    const [other] = harness.keys;
    const after = other === undefined ? [] : await recovered(harness, [other]);
    const verified = await verify({ ...harness, keys: [...harness.keys, ...tenant.keys] }, [...seen, ...after]);
    const { wrong, shares } = await tenant.verify(seen);
    return { ...verified, wrong: [...verified.wrong, ...wrong], shares, events: [...faults, ...tenant.events] };
  } finally {
    await harness.stop();
  }
}

/** The namespaces of a tenant with their keys, and what the tenant and the platform team do with them. */
async function createTenant(harness: Harness, next: () => number) {
  const { database, instanceUid } = harness;
  const anchor = Math.floor(Date.now() / 1000) * 1000;
  const team: ScopePolicy = {
    scopeId: randomUUID(),
    kind: 'team',
    name: 'shared',
    blocked: false,
    models: [],
    anchor,
    budget: { limit: `${OF_TEAM}`, duration: '30d', alignment: 'Rolling' },
  };
  const holder = { uid: randomUUID(), namespace: 'default', name: 'shared' };
  await database.putScope({ instanceUid, kind: 'team', alias: 'shared', holder, policy: team, generation: 1 });
  const rows = new Map<string, NamespacePolicy>();
  const keys: Key[] = [];
  const events: string[] = [];
  let recounts = 0;
  let since = 1;
  const budgetOf = (limit: bigint, duration = '30d'): Budget => ({
    limit: `${limit}`,
    duration,
    alignment: 'Rolling',
    sinceGeneration: since,
  });
  for (const name of NAMES) {
    const more = { anchor, chargedScopeIds: [team.scopeId], budget: budgetOf(OF_NAMESPACE) };
    rows.set(name, await putNamespace(database, instanceUid, name, more));
  }
  const addKey = async (namespace: string) =>
    void keys.push(await makeKey(database, instanceUid, keys.length + 1, OF_KEY, namespace));
  for (let key = 0; key < FIRST_KEYS; key += 1) await addKey(NAMES[key % 2] ?? 'lab');

  /** As the reconciler does it. */
  const putRow = async (policy: NamespacePolicy, recounted: ReadonlyArray<Recount> = []) => {
    const { name } = policy;
    const write = {
      instanceUid,
      kind: 'namespace',
      alias: name,
      holder: namespaceHolder(name),
      generation: 1,
    } as const;
    await database.putScope({ ...write, policy, ...(recounted.length > 0 && { recounts: recounted }) });
    rows.set(name, policy);
  };
  /** One of the tenant's keys moves to its other namespace: a VirtualKey there proves that it has the value. */
  const adopt = async (key: Key) => {
    const { holder: old, policy } = key.write;
    const namespace = old.namespace === 'lab' ? 'web' : 'lab';
    const heir = { uid: randomUUID(), namespace, name: old.name };
    const write = { ...key.write, holder: heir, policy: { ...policy, object: { namespace, name: old.name } } };
    const proof = { proof: key.write.value?.hash ?? '', formerHolders: [old.uid] };
    if ((await database.putScope({ ...write, ...proof })) !== 'written') throw new Error('the key was not adopted');
    Object.assign(key, { write });
  };
  const actions: ReadonlyArray<readonly [string, (row: NamespacePolicy) => Promise<unknown>]> = [
    ['a new key', ({ name }) => addKey(name)],
    ['adoption', () => adopt(keys[Math.floor(next() * keys.length)] as Key)],
    ['adoption', () => adopt(keys[Math.floor(next() * keys.length)] as Key)],
    [
      'a budget per key',
      (row) => {
        since += 1;
        return putRow({ ...row, perKey: { budget: budgetOf(OF_NAMESPACE / 5n, '1h') } });
      },
    ],
    ['no budget per key', ({ perKey: _, ...row }) => putRow(row)],
    ['models', (row) => putRow({ ...row, models: row.models.length === 0 ? ['fault', 'other'] : [] })],
    [
      'another window',
      (row) => {
        since += 1;
        recounts += 1;
        const budget = budgetOf(OF_NAMESPACE, row.budget?.duration === '30d' ? '31d' : '30d');
        const window = windowAt({ ...budget, anchor }, Date.now());
        return putRow({ ...row, budget }, [{ scopeId: row.scopeId, window }]);
      },
    ],
  ];
  /** The spend of each scope by its ledger rows. */
  const spentByScope = async (): Promise<ReadonlyMap<string, bigint>> => {
    const spent = await harness.postgres.query<{ scope_id: string; cost: string }>(harness.connection, BY_LEDGER_ROW);
    return new Map(spent.map(({ scope_id, cost }) => [scope_id, BigInt(cost)]));
  };
  return {
    keys,
    events,
    /** One of the actions; none if PostgreSQL is away. */
    async edit(): Promise<void> {
      const [name, act] = actions[Math.floor(next() * actions.length)] ?? [];
      const row = rows.get(NAMES[Math.floor(next() * 2)] ?? 'lab');
      if (name === undefined || act === undefined || row === undefined) return;
      await act(row).then(
        () => events.push(name),
        () => undefined,
      );
    },
    /** When nothing is in flight. */
    async verify(seen: ReadonlyArray<ClientReply>) {
      const spent = await spentByScope();
      const spentBy = (scopeId: string) => spent.get(scopeId) ?? 0n;
      const doubtful = BigInt(seen.filter(({ isSuspect }) => isSuspect).length) * MAX_RESERVATION;
      // What was reserved when a window was recounted may exceed the limit.
      const recounted = BigInt(recounts * CLIENTS) * MAX_RESERVATION;
      const wrong: string[] = [];
      for (const { name, scopeId, budget } of rows.values()) {
        const over = spentBy(scopeId) - OF_NAMESPACE - doubtful - recounted;
        if (over > 0n) wrong.push(`namespace ${name} spent ${over} nano-dollars above its limit`);
        const window = windowAt({ ...(budget as Budget), anchor }, Date.now());
        const [sum] = await database.sums([{ scopeId, window }]);
        if (sum?.spent !== spentBy(scopeId))
          wrong.push(`namespace ${name} spent ${spentBy(scopeId)}, its window has ${sum?.spent}`);
      }
      const overTeam = spentBy(team.scopeId) - OF_TEAM - doubtful;
      if (overTeam > 0n) wrong.push(`the Team spent ${overTeam} nano-dollars above its limit`);
      const ofNamespaces = [...rows.values()].reduce((all, { scopeId }) => all + spentBy(scopeId), 0n);
      if (ofNamespaces !== spentBy(team.scopeId))
        wrong.push(`the Team spent ${spentBy(team.scopeId)}, its namespaces ${ofNamespaces}`);
      const ofKeys = keys.reduce((all, { scopeId }) => all + spentBy(scopeId), 0n);
      if (ofKeys !== ofNamespaces) wrong.push(`the keys spent ${ofKeys}, their namespaces ${ofNamespaces}`);
      if (!seen.some(({ code }) => code === 'budget_exceeded')) wrong.push('no limit was reached');
      return { wrong, shares: { ofNamespaces: `${ofNamespaces} of ${OF_TEAM}` } };
    },
  };
}

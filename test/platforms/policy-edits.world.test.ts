// Is what somebody edits in force within five seconds on every gateway process that shares a store?
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { eventually } from '../support/eventually.ts';
import { whyNoRedis } from '../support/redis.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { mountSample } from './mounts.ts';
import { type NodeProcess, RECONCILE_TOKEN, startNode } from './node-process.ts';
import { startStore, startTwoGateways, type TwoGateways } from './two-gateways.ts';
import { startWorld, type TestWorld } from './world.ts';

const PAYS = '200';
const SPENT = '429 budget_exceeded';
const BLOCKED = '403 key_blocked';
const UNKNOWN = '401 invalid_api_key';
/** Less than any prompt costs. */
const NEXT_TO_NOTHING = '0.000000001';
const ROTATE = { metadata: { annotations: { 'auth.gateway-operator.dev/rotate': 'now' } } };

interface Edit {
  readonly name: string;
  /** Beside a budget of ten dollars. */
  readonly spec: object;
  /** Absent: the key is deleted. */
  readonly patch?: Readonly<Record<string, unknown>>;
  /** What its value is answered before the edit and after it, and nothing else ever. */
  readonly answers: readonly [string, string];
}

/** By `GET key`, and by the status. */
interface ReportedState {
  readonly currentSpend?: string;
  readonly budgetResetDate?: string;
}

const EDITS: readonly Edit[] = [
  {
    name: 'raised',
    spec: { maxBudget: NEXT_TO_NOTHING },
    patch: { spec: { maxBudget: '10' } },
    answers: [SPENT, PAYS],
  },
  { name: 'lowered', spec: {}, patch: { spec: { maxBudget: NEXT_TO_NOTHING } }, answers: [PAYS, SPENT] },
  { name: 'blocked', spec: {}, patch: { spec: { blocked: true } }, answers: [PAYS, BLOCKED] },
  { name: 'unblocked', spec: { blocked: true }, patch: { spec: { blocked: false } }, answers: [BLOCKED, PAYS] },
  { name: 'rotated', spec: { rotation: { every: '1d', overlap: '1s' } }, patch: ROTATE, answers: [PAYS, UNKNOWN] },
  { name: 'lengthened', spec: {}, patch: { spec: { budgetDuration: '31d' } }, answers: [PAYS, PAYS] },
  { name: 'deleted', spec: {}, answers: [PAYS, UNKNOWN] },
];
/** Five seconds, an overlap of one, and as much again for the machine. */
const IN_FORCE = 12_000;

const keys = resourceOf('VirtualKey');
const keyOf = ({ name, spec }: Edit) => ({
  apiVersion: 'auth.gateway-operator.dev/v1alpha1',
  kind: 'VirtualKey',
  metadata: { name, namespace: 'default' },
  spec: {
    keyAlias: name,
    maxBudget: '10',
    budgetDuration: '30d',
    ...spec,
    connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
  },
});

const base64 = ({
  host,
  port,
  password,
}: {
  readonly host: string;
  readonly port: string;
  readonly password: string;
}) =>
  Object.fromEntries(
    Object.entries({ host, port, password }).map(([name, text]) => [name, Buffer.from(text).toString('base64')]),
  );

/** In nano-dollars, and in seconds. */
const spendOf = ({ currentSpend }: ReportedState): number => Math.round(Number(currentSpend) * 1e9);
const resetOf = ({ budgetResetDate }: ReportedState): number => Math.floor(Date.parse(budgetResetDate ?? '') / 1000);

const SPENT_BY_LEDGER_ROWS = `select sum(r.cost)::text as spent
  from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id
  where (select scope_id from gateway_operator.claim where alias = 'lengthened') = any(s.scope_ids)`;

const missing = whyNoRedis();

describeUnless(missing, 'two gateway processes on one store', () => {
  let world: TestWorld;
  let reconcile: NodeProcess;
  let gateways: TwoGateways;

  beforeAll(async () => {
    world = await startWorld(await sharedPostgres());
    await linkBundles(world.folder);
    const bundle = (name: string) => join(world.folder, `node/${name}.mjs`);
    const redis = await startStore();
    const store = base64({ ...redis.connection, port: `${redis.connection.port}` });
    // Reconcile audits the store that the instance names.
    const sample = world
      .sample()
      .map((object) => (object.metadata.name === 'sample-store' ? { ...object, data: store } : object));
    await world.apply([...sample, ...EDITS.map(keyOf)]);
    reconcile = await startNode(bundle('reconcile'), {
      KUBECONFIG: world.kubeconfig,
      GATEWAY_PROCESSES: 'many',
      RECONCILE_TOKEN,
    });
    await resync();
    const mounts = await mountSample(world.cluster, join(world.folder, 'mounts'));
    gateways = await startTwoGateways(bundle('gateway'), mounts, world.folder, redis);
  });
  afterAll(async () => {
    await Promise.all([reconcile, ...(gateways?.both ?? [])].map((process) => process?.stop()));
    await gateways?.stopStore();
    await world?.stop();
  });

  const headers = { authorization: `Bearer ${RECONCILE_TOKEN}` };
  const resync = async () => expect((await fetch(reconcile.url, { method: 'POST', headers })).status).toBe(200);
  const currentValue = async (name: string): Promise<string> => {
    const status = (await world.cluster.get(keys, 'default', name))?.status as { keyValue?: string } | undefined;
    return status?.keyValue ?? '';
  };
  const ask = async ({ url }: NodeProcess, value: string): Promise<string> => {
    const answer = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sample-small', max_tokens: 8, messages: [{ role: 'user', content: 'Hi.' }] }),
    });
    const body = (await answer.json()) as { error?: { code: string } };
    return [answer.status, body.error?.code].join(' ').trim();
  };
  const toldBy = async ({ url }: NodeProcess, value: string): Promise<ReportedState> => {
    const answer = await fetch(`${url}/key`, { headers: { authorization: `Bearer ${value}` } });
    return (await answer.json()) as ReportedState;
  };
  const perform = async ({ name, patch }: Edit): Promise<void> => {
    if (patch !== undefined) await world.cluster.patch(keys, 'default', name, patch);
    else {
      const uid = (await world.cluster.get(keys, 'default', name))?.metadata.uid;
      await world.cluster.delete(keys, 'default', name, uid ?? '');
    }
  };

  test('raise, lower, block, unblock, rotate and delete are in force within five seconds, and nothing else is ever answered', async () => {
    const asked = await Promise.all(
      EDITS.flatMap((edit) =>
        gateways.both.map(async (gateway) => ({ edit, gateway, value: await currentValue(edit.name) })),
      ),
    );
    /** What each was told, one after the other, repeats left out. */
    const replies = asked.map((): string[] => []);
    const round = () =>
      Promise.all(
        asked.map(async ({ gateway, value }, place) => {
          const answers = await ask(gateway, value);
          if (replies[place]?.at(-1) !== answers) replies[place]?.push(answers);
          return answers;
        }),
      );
    const expected = (which: 0 | 1) => asked.map(({ edit }) => edit.answers[which]);
    // A crowd that meets a gateway on its first request may be told 503 on a busy machine.
    const greet = () => Promise.all(asked.map(({ gateway, value }) => ask(gateway, value)));
    await eventually(greet, (answers) => !answers.includes('503 ledger_unavailable'));
    expect(await round()).toEqual(expected(0));

    await Promise.all(EDITS.map(perform));
    // Asked up to the write, so that each process has an answer of just before it.
    await round();
    await resync();
    const isAll = (answers: readonly string[]) => answers.join() === expected(1).join();
    const inForce = eventually(round, isAll, IN_FORCE);
    const renewed = await currentValue('rotated');
    expect(await Promise.all(gateways.both.map((gateway) => ask(gateway, renewed)))).toEqual([PAYS, PAYS]);
    await inForce;
    await pause(1_000);
    await round();
    expect(replies).toEqual(asked.map(({ edit }) => [...new Set(edit.answers)]));
  });

  test('the window that was lengthened keeps its spend: both processes, the status and the entries say the same', async () => {
    const value = await currentValue('lengthened');
    const look = async () => {
      await resync();
      const status = (await world.cluster.get(keys, 'default', 'lengthened'))?.status as ReportedState;
      const all = [status, ...(await Promise.all(gateways.both.map((gateway) => toldBy(gateway, value))))];
      const [row] = await world.postgres.query<{ spent: string }>(world.database, SPENT_BY_LEDGER_ROWS);
      return {
        entries: Number(row?.spent),
        spends: all.map(spendOf),
        resets: all.map(resetOf),
      };
    };
    const { entries, resets } = await eventually(look, (seen) => seen.spends.every((one) => one === seen.entries));
    expect(entries).toBeGreaterThan(0);
    expect(new Set(resets).size).toBe(1);
    // Made today: a window of 30 days would end before that.
    expect(resets[0]).toBeGreaterThan(Date.now() / 1000 + 30.5 * 86_400);
  });

  test('an edit that is undone leads to no whole budget: all that was spent meanwhile counts, before any audit', async () => {
    const value = await currentValue('lengthened');
    expect(await Promise.all(gateways.both.map((gateway) => ask(gateway, value)))).toEqual([PAYS, PAYS]);
    const [before] = await eventually(
      () => Promise.all(gateways.both.map((gateway) => toldBy(gateway, value))),
      ([one, other]) => one !== undefined && other !== undefined && spendOf(one) === spendOf(other),
    );
    await world.cluster.patch(keys, 'default', 'lengthened', { spec: { budgetDuration: '30d' } });
    await resync();
    for (const gateway of gateways.both) {
      const replies = await eventually(
        () => toldBy(gateway, value),
        (one) => resetOf(one) < Date.now() / 1000 + 30.5 * 86_400,
      );
      expect(spendOf(replies)).toBeGreaterThanOrEqual(spendOf(before ?? {}));
    }
  });
});

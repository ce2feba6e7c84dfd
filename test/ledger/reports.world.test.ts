// The queries of docs/guides/find-out-who-spent-what.md, over the ledger rows of a gateway process that died with its
// disk.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database } from '#adapters/postgres/database.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { documented } from '../platforms/documented.ts';
import { startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { type SharedPostgres, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { type Order, openLedger } from './spender.ts';

const PAGE = 'docs/guides/find-out-who-spent-what.md';
const PAGE_TEXT = readFileSync(join(import.meta.dirname, '../..', PAGE), 'utf8');

type Row = Readonly<Record<string, string | null>>;

const KINDS = ['key', 'user', 'team'] as const;
const TAG = 'cost-centre-4711';

/** Nano-dollars as the page rounds them. */
const dollars = (nano: bigint): string => (Number((nano + 500n) / 1000n) / 1e6).toFixed(6);

/** A policy without a limit in practice, that counts from an hour ago. */
const policyOf = (kind: (typeof KINDS)[number]) => ({
  scopeId: randomUUID(),
  name: `claude-${kind}`,
  blocked: false,
  models: [],
  anchor: Math.floor(Date.now() / 1000) * 1000 - 3_600_000,
  budget: { limit: '100000000000000', duration: '30d', alignment: 'Rolling' as const },
  ...(kind === 'key' ? { kind, chargedScopeIds: [], tags: [TAG] } : { kind }),
});

describeUnless(whyNoRedis(), 'reports', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-reports-'));
  const instanceUid = randomUUID();
  const scopes = KINDS.map(policyOf);
  let server: SharedPostgres;
  let connection: DatabaseConnection;
  let redis: TestRedis;
  /** The role of the page, which may read what the queries read. */
  let reader: DatabaseConnection;
  beforeAll(async () => {
    [server, redis] = await Promise.all([sharedPostgres(), startRedis()]);
    connection = await server.migratedDatabase();
    reader = { ...connection, username: 'reports', password: 'reads-only' };
    await server.query(connection, `create role reports login password 'reads-only'`);
    for (const [, grant = ''] of PAGE_TEXT.matchAll(/^(grant .+ to reports);$/gm))
      await server.query(connection, grant);
  });
  afterAll(async () => {
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The VirtualKey `claude-grace`, a User and a Team, which have the scopes. */
  async function putClaims(database: Database): Promise<void> {
    await database.openInstance({ uid: instanceUid, namespace: 'llm', name: 'llm' });
    for (const policy of scopes) {
      const name = policy.kind === 'key' ? 'claude-grace' : policy.name;
      const holder = { uid: randomUUID(), namespace: 'team-web', name };
      const claim = { instanceUid, alias: name, holder, generation: 1 };
      await database.putScope(
        policy.kind === 'key'
          ? { ...claim, kind: 'key', policy: { ...policy, object: holder } }
          : { ...claim, kind: policy.kind, policy },
      );
    }
  }

  /** The rows of a query of the page, or of its form for another kind. The month that it selects is this one. */
  function report(name: string, kind = ''): Promise<ReadonlyArray<Row>> {
    const [year, month] = [new Date().getUTCFullYear(), new Date().getUTCMonth()];
    const first = (later: number) => new Date(Date.UTC(year, month + later, 1)).toISOString().slice(0, 10);
    const text = documented(PAGE, name, 'sql')
      .replaceAll('2026-11-01', first(0))
      .replaceAll('2026-12-01', first(1))
      .replaceAll(/c\.kind = '\w+'/g, (condition) => (kind === '' ? condition : `c.kind = '${kind}'`));
    const isOfLastMonth = text.includes(`interval '1 month'`);
    return server.query<Row>(reader, isOfLastMonth ? text.replaceAll('now()', `timestamptz '${first(1)} UTC'`) : text);
  }

  test('each report counts the charge for a lost Pod once, and its requests never', { timeout: 90_000 }, async () => {
    const order: Order = { connection, folder: join(folder, 'lost'), instanceUid, scopes, redis: redis.connection };
    const child = startChild(process.execPath, [join(import.meta.dirname, 'spender.ts'), JSON.stringify(order)]);
    await child.until(() => child.stdout().split('settled').length > 300);
    // More than the report of requests shows: on a busy machine fewer are booked yet.
    await eventually(
      () => server.query<Row>(connection, 'select 1 from gateway_operator.ledger_row limit 100'),
      (rows) => rows.length === 100,
    );
    await child.end('SIGKILL');
    rmSync(order.folder, { recursive: true, force: true });

    const { ledger, database, close } = openLedger({ ...order, folder: join(folder, 'next') });
    await putClaims(database);
    await ledger.start();
    const text = `select kind, count(*) as rows, sum(cost) as cost from gateway_operator.ledger_row group by kind order by kind`;
    // Its lease ends after 20 s.
    const [expired, settled] = await eventually(
      () => server.query<Row>(connection, text),
      (rows) => rows.length === 2,
    );
    expect([expired?.kind, settled?.kind]).toEqual(['expired', 'settled']);
    expect(expired?.rows).toBe('3');
    await expect(server.query(reader, 'select secret from gateway_operator.claim')).rejects.toThrow(
      'permission denied',
    );
    const spends = await ledger.spend(scopes);
    await close();

    const charge = BigInt(expired?.cost ?? 0) / 3n;
    const sum = charge + BigInt(settled?.cost ?? 0);
    expect(charge > 0n).toBe(true);
    expect(spends).toMatchObject({ value: KINDS.map(() => ({ spent: sum })) });
    const namespace = 'team-web';
    const [user_name, team] = ['claude-user', 'claude-team'];
    expect(await report('week')).toEqual([{ namespace, name: 'claude-grace', dollars: dollars(sum) }]);
    expect(await report('week', 'user')).toEqual([{ namespace, name: user_name, dollars: dollars(sum) }]);
    expect(await report('week', 'team')).toEqual([{ namespace, name: team, dollars: dollars(sum) }]);
    expect(await report('users')).toEqual([{ namespace, user_name, dollars: dollars(sum) }]);
    const day = expect.stringMatching(/^\d{4}-\d\d-\d\d$/);
    expect(await report('teams')).toEqual([{ day, namespace, team, dollars: dollars(sum) }]);
    expect(await report('tags')).toEqual([{ tag: TAG, dollars: dollars(sum) }]);
    const models = [
      { model: 'small', requests: settled?.rows, dollars: dollars(sum - charge) },
      { model: 'unknown', requests: '0', dollars: dollars(charge) },
    ];
    const byModel = (rows: ReadonlyArray<Row>) => rows.toSorted((a, b) => `${a.model}`.localeCompare(`${b.model}`));
    expect(byModel(await report('models'))).toMatchObject(models);
    expect(byModel(await report('users and models'))).toEqual(models.map((row) => ({ namespace, user_name, ...row })));
    const requests = await report('requests');
    expect(requests).toHaveLength(100);
    expect(requests.filter(({ kind }) => kind === 'expired')).toHaveLength(1);
  });
});

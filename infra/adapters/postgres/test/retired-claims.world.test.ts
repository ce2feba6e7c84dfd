import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { ScopeId } from '#core/ports/policy.ts';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { namespaceWrite, scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { RETIRED_DAYS } from '../retired-claims.ts';

const DAY = 86_400_000;
const INSTANCE = 'instance-1';

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;

beforeAll(async () => {
  server = await sharedPostgres();
});

beforeEach(async () => {
  connection = await server.migratedDatabase();
  database = createDatabase(connection, { log: createMemoryLog() });
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  return () => database.close();
});

const putKey = async (alias: string, more: object = {}): Promise<ScopeId> => {
  const write = scopeWrite(alias, { value: { hash: `value of ${alias}` } });
  await database.putScope({ ...write, policy: { ...write.policy, ...more } });
  return write.policy.scopeId;
};

const putTeam = async (alias: string): Promise<ScopeId> => {
  const write = scopeWrite(alias, { kind: 'team' });
  await database.putScope(write);
  return write.policy.scopeId;
};

/** Retires these claims, by a clock that was so many days behind. */
async function retire(scopes: ReadonlyArray<ScopeId>, days: number): Promise<void> {
  await database.retire(scopes);
  for (const table of ['claim', 'key_value'])
    await server.query(
      connection,
      `update gateway_operator.${table} set retired_at = now() - make_interval(days => $2::int) where scope_id = any($1)`,
      [scopes, days],
    );
}

/** The aliases of all claims, and the hashes of all values. */
async function left(): Promise<{ readonly claims: ReadonlyArray<string>; readonly values: ReadonlyArray<string> }> {
  const of = async (column: string, table: string) => {
    const rows = await server.query<{ text: string }>(
      connection,
      `select ${column} as text from gateway_operator.${table} order by 1`,
    );
    return rows.map(({ text }) => text);
  };
  return { claims: await of('alias', 'claim'), values: await of('hash', 'key_value') };
}

const book = (scopeId: ScopeId, days: number, window = { start: Date.now() - 2000 * DAY, end: Date.now() + 9 * DAY }) =>
  bookLedgerRows(database, INSTANCE, [
    ledgerRowOf({ id: idAt(Date.now() - days * DAY), cost: 3n, scopeWindows: [{ scopeId, window }] }),
  ]);

test('a retired claim leaves with its values and sums after the usage that names it, once', async () => {
  const further = { scopeId: scopeNumber(9), model: 'small', limit: '1', duration: '1d', alignment: 'Rolling' };
  const [old, recent] = [await putKey('old', { furtherBudgets: [further] }), await putKey('recent')];
  await putKey('live');
  for (const scope of [old, recent, further.scopeId]) await book(scope, 1500);
  await retire([old], RETIRED_DAYS + 1);
  await retire([recent], RETIRED_DAYS - 1);
  // The caller's clock counts if it is behind.
  await database.dropDays(1100, Date.now() - 3 * DAY);
  expect((await left()).claims).toEqual(['live', 'old', 'recent']);
  await database.dropDays(1100, Date.now());
  expect(await left()).toEqual({ claims: ['live', 'recent'], values: ['value of live', 'value of recent'] });
  for (const table of ['sum', 'opening_balance'])
    expect(await server.query(connection, `select scope_id from gateway_operator.${table}`)).toEqual([
      { scope_id: recent },
    ]);
});

test('a retired claim stays while a ledger row or a rejected row names it', async () => {
  const [inLedger, rejected] = [await putKey('in ledger'), await putKey('rejected')];
  await putKey('unused').then((unused) => retire([unused], RETIRED_DAYS + 1));
  await book(inLedger, 1500);
  await retire([inLedger, rejected], RETIRED_DAYS + 1);
  await server.query(
    connection,
    `insert into gateway_operator.entry_rejected (id, kind, instance_uid, ledger_row, reason, cost, scope_windows, scope_ids)
    values ('one', 'settled', $1, '{}', 'refused', 1, '[]', array[$2])`,
    [INSTANCE, rejected],
  );
  await database.dropDays('forever', Date.now());
  const stays = { claims: ['in ledger', 'rejected'], values: ['value of in ledger', 'value of rejected'] };
  expect(await left()).toEqual(stays);
  await database.dropDays(1600, Date.now());
  expect(await left()).toEqual(stays);
  await database.dropDays(1400, Date.now());
  expect(await left()).toEqual({ claims: ['rejected'], values: ['value of rejected'] });
});

test('a retired Team stays while a live VirtualKey or its namespace is charged to it, which reads its policy', async () => {
  const [charged, shared, other] = [await putTeam('charged'), await putTeam('shared'), await putTeam('other')];
  await putKey('live', { chargedScopeIds: [charged] });
  await database.putScope(namespaceWrite('apps', { chargedScopeIds: [shared] }));
  await retire([charged, shared, other], RETIRED_DAYS + 1);
  const find = async () => (await database.policies(INSTANCE).find(['value of live'])).get('value of live');
  const before = await find();
  expect(before).toMatchObject({ scopes: [{}, { scopeId: charged }, { name: 'apps' }, { scopeId: shared }] });
  await database.dropDays('forever', Date.now());
  expect((await left()).claims).toEqual(['apps', 'charged', 'live', 'shared']);
  expect(await find()).toEqual(before);
});

test('of the values of a live claim, those that ended long ago leave', async () => {
  const write = scopeWrite('key');
  const { scopeId } = write.policy;
  for (const hash of ['first', 'second', 'third']) await database.putScope({ ...write, value: { hash } });
  await database.endValues(scopeId, ['first', 'second']);
  const age = (hash: string, days: number) =>
    server.query(
      connection,
      'update gateway_operator.key_value set retired_at = now() - make_interval(days => $2::int) where hash = $1',
      [hash, days],
    );
  await age('first', RETIRED_DAYS + 1);
  await age('second', RETIRED_DAYS - 1);
  await database.dropDays('forever', Date.now());
  expect(await left()).toEqual({ claims: ['key'], values: ['second', 'third'] });
});

test('if the time is over, the next call continues on the same day', async () => {
  await retire([await putKey('old')], RETIRED_DAYS + 1);
  await database.dropDays('forever', Date.now(), { isOver: () => true });
  expect((await left()).claims).toEqual(['old']);
  await database.dropDays('forever', Date.now());
  expect(await left()).toEqual({ claims: [], values: [] });
});

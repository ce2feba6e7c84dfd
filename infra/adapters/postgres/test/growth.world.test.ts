// 500 made-up days of bookings: which tables grow.
import { beforeAll, expect, test } from 'vitest';
import { idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase } from '../database.ts';

const DAY = 86_400_000;
const INSTANCE = 'instance-1';
const [DAYS, KEPT, RETIRED] = [500, 30, 40];
const LENGTHS = [1, 2, 4, 5];
const SCOPES = LENGTHS.length + 1;

let server: SharedPostgres;

beforeAll(async () => {
  server = await sharedPostgres();
});

test('every table stops growing: after 500 days each has as many rows as after 100, and all sums are exact', async () => {
  const connection = await server.migratedDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  const epochs = database.epochs(INSTANCE, ONE_STORE);
  await epochs.raise(0, 0);
  await epochs.open(1);
  const ledger = database.ledgerDatabase(INSTANCE, (size) => crypto.getRandomValues(new Uint8Array(size)));
  const account = crypto.randomUUID();
  const began = Date.now();
  const today = Math.floor(began / DAY) * DAY;
  const first = today - (DAYS - 1) * DAY;
  const budget = { limit: '100', duration: '7d', alignment: 'Rolling' as const };
  const research = scopeWrite('research');
  const key = { ...research, policy: { ...research.policy, budget } };
  await database.putScope(key);
  /**
   * Scopes with windows of 1 to 5 days, and the last one without a budget. A hundred days have whole windows of each.
   */
  const windowOf = (scope: number, day: number) => {
    if (scope === SCOPES) return { start: first, end: first + 36_500 * DAY };
    const length = LENGTHS[scope - 1] ?? 1;
    const start = first + Math.floor(day / length) * length * DAY;
    return { start, end: start + length * DAY };
  };
  /** A VirtualKey of one day: made, used and deleted. The other one gets a new value each day. */
  const useAndRetire = async (day: number) => {
    const temporary = scopeWrite(`temporary-${day}`, { value: { hash: `temporary-${day}` } });
    for (const write of [temporary, { ...key, value: { hash: `value-${day}` } }]) await database.putScope(write);
    await database.retire([temporary.policy.scopeId]);
    await database.endValues(key.policy.scopeId, [`value-${day - 1}`]);
    for (const table of ['claim', 'key_value'])
      await server.query(
        connection,
        `update gateway_operator.${table} set retired_at = to_timestamp($1::float8 / 1000) where retired_at >= $2`,
        [first + day * DAY, new Date(began)],
      );
    return { scopeId: temporary.policy.scopeId, window: { start: first + day * DAY, end: first + (day + 7) * DAY } };
  };
  const rowsOf = async () => {
    const rows = await server.query<{ table: string; count: number }>(connection, COUNTS);
    return Object.fromEntries(rows.map(({ table, count }) => [table, count]));
  };
  const counts = new Map<number, Record<string, number>>();
  for (let day = 0; day < DAYS; day += 1) {
    const scopeWindows = Array.from({ length: SCOPES }, (_, place) => ({
      scopeId: scopeNumber(place + 1),
      window: windowOf(place + 1, day),
    }));
    const all = [...scopeWindows, await useAndRetire(day)];
    const rows = [1, 7, 23].map((hour) =>
      ledgerRowOf({ id: idAt(first + day * DAY + (hour * DAY) / 24), cost: 3n, scopeWindows: all }),
    );
    const at = { id: account, batch: day + 1, callNumber: day + 1 };
    const booked = await ledger.bookBatch({ epoch: 1, account: at, storeCalls: day + 1, rows });
    expect(booked).toEqual({ outcome: 'booked', rejected: [] });
    await database.ensureDays();
    await database.sumUpUsage();
    // The database's clock is at the last day.
    await database.dropDays(KEPT + DAYS - 1 - day, Date.now(), { retiredDays: RETIRED + DAYS - 1 - day });
    if ((day + 1) % 100 === 0) counts.set(day + 1, await rowsOf());
  }
  expect(counts.get(500)).toMatchObject({
    ledger_row: expect.any(Number),
    claim: RETIRED + 1,
    key_value: 2 * RETIRED + 1,
  });
  // Usage is kept for 1,100 days: one row for each scope, model and day.
  for (const [day, count] of counts) expect([day, count.usage_day]).toEqual([day, day * (SCOPES + 1)]);
  for (const table of Object.keys(counts.get(500) ?? {}).filter((name) => name !== 'usage_day'))
    expect([table, counts.get(500)?.[table]]).toEqual([table, counts.get(100)?.[table]]);
  const windows = Array.from({ length: SCOPES }, (_, place) => windowOf(place + 1, DAYS - 1));
  const sums = await database.sums(windows.map((window, place) => ({ scopeId: scopeNumber(place + 1), window })));
  const daysOf = ({ start }: { readonly start: number }) => (today + DAY - start) / DAY;
  expect(sums.map(({ spent }) => spent)).toEqual(windows.map((window) => BigInt(9 * daysOf(window))));
  await database.close();
}, 300_000);

/** Rows of each table; those of partitions count for their parent. */
const COUNTS = `
select coalesce(p.relname, c.relname) as table, sum((xpath('/row/n/text()',
  query_to_xml(format('select count(*) as n from gateway_operator.%I', c.relname), false, true, '')))[1]::text::int)::int as count
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
where n.nspname = 'gateway_operator' and c.relkind = 'r'
group by 1 order by 1`;

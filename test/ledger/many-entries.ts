// Very many entries in a PostgreSQL within seconds, made by statements where they lie.
import pg from 'pg';
import { createDatabase } from '#adapters/postgres/database.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { Entry } from '#core/ports/books.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { createMemoryLog } from '../doubles/log.ts';

/** Entries lie evenly in the four months before this; every second one is charged to the busy team too. */
export const END = Date.UTC(2026, 10, 1);
const MONTHS = [6, 7, 8, 9, 10].map((month) => Date.UTC(2026, month, 1));
const [BEGIN = 0] = MONTHS;
export const WINDOW = { start: BEGIN, end: END };
export const INSTANCE = 'instance-1';
export const BUSY = '00000000-0000-7000-8000-000000000000';

/** Keys are numbered from 1; each pays ten entries, one after the other, and every tenth key has been recounted. */
export const keyNumber = (number: number): string => `00000000-0000-7000-8000-${hex(number)}`;
export const keysOf = (entries: number): number => entries / 10;
export const aliasOf = (number: number): string => `key-${number}`;

const hex = (number: number): string => number.toString(16).padStart(12, '0');

/** The id of the entry of that number, of so many. */
export function idOf(number: number, entries: number): string {
  return uuid(BEGIN + Math.floor((number * (END - BEGIN)) / entries), number);
}

let made = 0;
/** One that is not there yet, of the last second. */
export function newEntry(charges: ReadonlyArray<ScopeWindow>): Entry {
  made += 1;
  return { ...SAMPLE, id: uuid(END - 1000 + (made % 1000), 2 ** 40 + made), charges };
}

const uuid = (time: number, tail: number): string =>
  `${hex(time).slice(0, 8)}-${hex(time).slice(8)}-7000-8000-${hex(tail)}`;

const SAMPLE = {
  ...{ kind: 'settled' as const, cost: 5n, model: 'small', identifier: 'small-1', estimated: false, settledAt: END },
  tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
};

/** An empty database gets the schema and so many entries; then it is vacuumed and analyzed. */
export async function fillWith(entries: number, connection: DatabaseConnection): Promise<void> {
  const database = createDatabase(connection, { log: createMemoryLog() });
  await database.migrate();
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  // One entry a month makes the partitions.
  await database.book(
    INSTANCE,
    MONTHS.map((time) => ({ ...SAMPLE, id: uuid(time, 0), charges: [] })),
  );
  await database.close();
  const { host, port, username: user, password, dbname } = connection;
  const client = new pg.Client({ host, port, user, password, database: dbname });
  await client.connect();
  try {
    for (const statement of statementsFor(entries)) await client.query(statement);
  } finally {
    await client.end();
  }
}

const KEY = `('00000000-0000-7000-8000-' || lpad(to_hex(key), 12, '0'))::uuid`;
const ID = `(lpad(to_hex(time), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid`;
const SECOND_ID = `(lpad(to_hex(time - time % 1000), 12, '0') || '00000000000000000000')::uuid`;
const WHO_PAYS = `case when n % 2 = 0 then array[${KEY}, '${BUSY}'::uuid] else array[${KEY}] end`;

function statementsFor(entries: number): ReadonlyArray<string> {
  const keys = keysOf(entries);
  return [
    `insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, policy, charges)
      select ${KEY}, '${INSTANCE}', 'key', 'key-' || key, 'uid-' || key, 'apps', 'key-' || key,
        json_build_object('name', 'key-' || key), array['${BUSY}'::uuid]
      from generate_series(1, ${keys}) key`,
    `insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, policy)
      values ('${BUSY}', '${INSTANCE}', 'team', 'busy', 'uid-busy', 'apps', 'busy', '{"name": "busy"}')`,
    `insert into gateway_operator.key_value (scope_id, hash)
      select scope_id, encode(sha256(alias::bytea), 'hex') from gateway_operator.claim where kind = 'key'`,
    // In the order of ids, so that an hour lies together.
    `create temp table made as select n, (${BEGIN} + n::bigint * ${END - BEGIN} / ${entries}) as time, 1 + n * ${keys}::bigint / ${entries} as key
      from generate_series(1, ${entries - 1}) n`,
    `insert into gateway_operator.entry select ${ID}, 'settled', '${INSTANCE}', 5, 1, 1, 0, 0, 'small', 'small-1', false,
        to_timestamp(time / 1000.0), ${WHO_PAYS}, array[${BEGIN}, ${BEGIN}], array[${END}, ${END}] from made`,
    `insert into gateway_operator.charge (scope_id, id, cost) select ${KEY}, ${SECOND_ID}, 5 from made`,
    `insert into gateway_operator.charge (scope_id, id, cost) select '${BUSY}', ${SECOND_ID}, sum(5) from made where n % 2 = 0 group by 2`,
    `insert into gateway_operator.sum select ${KEY}, ${BEGIN}, ${END}, 5 * count(*) from made group by key`,
    `insert into gateway_operator.sum select '${BUSY}', ${BEGIN}, ${END}, 5 * count(*) from made where n % 2 = 0`,
    `insert into gateway_operator.hour_sum select ${KEY}, time / 3600000, 5 * count(*) from made group by key, 2 order by 2`,
    `insert into gateway_operator.hour_sum select '${BUSY}', time / 3600000, 5 * count(*) from made where n % 2 = 0 group by 2`,
    `insert into gateway_operator.recount select ${KEY}, ${BEGIN}, ${END}, '00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'
      from generate_series(1, ${keys}, 10) key`,
    'vacuum analyze',
  ];
}

// Days of ledger rows in an archive: real PostgreSQL, Parquet files, and what DuckDB reads in them.
import { globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createFolder } from '#adapters/archive/folder.ts';
import { createDatabase, type Database } from '#adapters/postgres/database.ts';
import type { Archive } from '#core/ports/archive.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { DAY, idAt, ledgerRowOf, scopeNumber } from '#core/ports/test/ledger-row.fixture.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog, type MemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { createLedgerArchive, type LedgerArchiveDependencies } from '../ledger-archive.ts';

const INSTANCE = 'instance-1';
const SIZE = { rows: 250_000, portion: 2500, bytes: 64 * 2 ** 20, groupBytes: 8 * 2 ** 20 };
const now = Date.now();

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;
let folder: string;
let log: MemoryLog;
let gauges: Map<string, number>;

beforeAll(async () => {
  server = await sharedPostgres();
});

beforeEach(async () => {
  connection = await server.migratedDatabase();
  log = createMemoryLog();
  gauges = new Map();
  folder = temporaryFolder();
  database = createDatabase(connection, { log });
  await database.openInstance({ uid: INSTANCE, namespace: 'apps', name: 'gateway' });
  return () => database.close();
});

/** The archive of a reconciler, and its next resync. */
function reconciler(more: Partial<LedgerArchiveDependencies> = {}) {
  const archive = createLedgerArchive({
    archive: createFolder(pathToFileURL(folder).href),
    keptDays: 'forever',
    clock: { now: () => now },
    log,
    metrics: { set: (name, value) => void gauges.set(name, value) },
    ...more,
  });
  return async () => {
    archive.add(database);
    await archive.work();
  };
}

/** Books from a process that ends: then PostgreSQL has counted its inserts. */
async function book(...rows: ReadonlyArray<LedgerRow>): Promise<void> {
  const other = createDatabase(connection, { log });
  expect(await bookLedgerRows(other, INSTANCE, rows)).toEqual({ rejected: [] });
  await other.close();
}

const rowAt = (days: number, more: Partial<LedgerRow> = {}): LedgerRow =>
  ledgerRowOf({ id: idAt(now - days * DAY), ...more });
const dayOf = (days: number): string => new Date(now - days * DAY).toISOString().slice(0, 10);
const files = (): ReadonlyArray<string> => globSync('**/*.parquet', { cwd: folder }).sort();
const waiting = () => gauges.get('gateway_operator_archive_waiting_days');
const tableOf = async (days: number): Promise<boolean> =>
  (
    await server.query(
      connection,
      `select 1 from pg_class where relname = 'ledger_row_${dayOf(days).replaceAll('-', '_')}'`,
    )
  ).length === 1;

async function duck(sql: string): Promise<ReadonlyArray<Readonly<Record<string, unknown>>>> {
  const instance = await DuckDBInstance.create(':memory:');
  const client = await instance.connect();
  try {
    const reader = await client.runAndReadAll(
      sql.replace('ROWS', `read_parquet('${folder}/**/*.parquet', hive_partitioning = true)`),
    );
    return reader.getRowObjectsJson();
  } finally {
    client.closeSync();
    instance.closeSync();
  }
}

const SUMS = `select id::varchar as id, kind, cost::varchar as cost from ROWS order by 1, 2`;
const stored = () =>
  server.query(
    connection,
    `select id::text, kind, (cost * 0.000000001)::numeric(18, 9)::text as cost from gateway_operator.ledger_row
    where id < $1::uuid order by 1, 2`,
    [idAt(Date.parse(dayOf(2)))],
  );

test('each day that ended 48 hours ago is in the archive, and DuckDB finds the same sums, to the nano-dollar', async () => {
  const key = scopeWrite('research');
  await database.putScope(key);
  const { scopeId } = key.policy;
  const window = { start: now - 10 * DAY, end: now + 20 * DAY };
  const scopeWindows = [
    { scopeId, window },
    { scopeId: scopeNumber(7), window },
  ];
  const charged = rowAt(4, { cost: 999_999_999_999_999_999n, model: 'größer/模型', scopeWindows, estimated: true });
  await book(
    charged,
    ...Array.from({ length: 40 }, (_, place) => rowAt(3, { cost: BigInt(place) ** 7n + 1n, model: `m${place % 3}` })),
    rowAt(5, { kind: 'expired', cost: -1n }),
    rowAt(5, { kind: 'correction', cost: -123_456_789_012n }),
    rowAt(1),
    rowAt(0),
  );
  const resync = reconciler({ size: { ...SIZE, rows: 12, portion: 5 } });
  await resync();
  expect(log.lines).toEqual([]);
  expect(waiting()).toBe(0);
  expect(await duck(SUMS)).toEqual(await stored());
  expect(await duck(`select day::varchar as day, count(*)::int as rows from ROWS group by 1 order by 1`)).toEqual([
    { day: dayOf(5), rows: 2 },
    { day: dayOf(4), rows: 1 },
    { day: dayOf(3), rows: 40 },
  ]);
  const [row] = await duck(`select * exclude (day) replace (time::varchar as time, settled_at::varchar as settled_at)
    from ROWS where cost > 1000`);
  const { tokens, settledAt } = charged;
  const dateOf = (time: number) => expect.stringContaining(new Date(time).toISOString().slice(0, 10));
  expect(row).toEqual({
    id: charged.id,
    kind: 'settled',
    instance_uid: INSTANCE,
    instance: 'apps/gateway',
    time: dateOf(now - 4 * DAY),
    settled_at: dateOf(settledAt),
    model: 'größer/模型',
    identifier: charged.identifier,
    input_tokens: String(tokens.input),
    output_tokens: String(tokens.output),
    cached_input_tokens: String(tokens.cachedInput),
    cache_write_tokens: String(tokens.cacheWrite),
    cost: '999999999.999999999',
    estimated: true,
    scopes: [
      { id: scopeId, kind: 'key', alias: key.alias, namespace: expect.any(String), name: expect.any(String) },
      { id: scopeNumber(7), kind: null, alias: null, namespace: null, name: null },
    ],
  });
  // Ten rows fit into a file of at most twelve, beside the other rows of a last id.
  expect(files().filter((path) => path.includes(dayOf(3)))).toHaveLength(4);
  const before = files().map((path) => statSync(join(folder, path)).ino);
  await resync();
  expect(files().map((path) => statSync(join(folder, path)).ino)).toEqual(before);
});

test('rows that come later are in the archive too, which never has less than before, also while it is written', async () => {
  const ids = new Map(Array.from({ length: 30 }, (_, place) => [place, idAt(now - 3 * DAY - place)] as const));
  const booked = [...ids.values()].map((id) => ledgerRowOf({ id }));
  await book(...booked);
  const seen = new Set<unknown>();
  const plain = createFolder(pathToFileURL(folder).href);
  const archive: Archive = {
    ...plain,
    write: async (path, bytes, signal) => {
      await plain.write(path, bytes, signal);
      const there = new Set((await duck(SUMS)).map(({ id, kind }) => `${id} ${kind}`));
      for (const row of seen) expect(there).toContain(row);
      for (const row of there) seen.add(row);
    },
  };
  const resync = reconciler({ archive, size: { ...SIZE, rows: 12, portion: 5 } });
  await resync();
  const corrections = booked.map(({ id }) => ledgerRowOf({ id, kind: 'correction', cost: -5n }));
  await book(...corrections, rowAt(3, { kind: 'expired', cost: 70n }));
  await expect
    .poll(async () => {
      await resync();
      return duck(SUMS);
    })
    .toEqual(await stored());
  expect(waiting()).toBe(0);
  expect(log.lines).toEqual([]);
  for (const { rows } of await duck(
    `select count(*)::int as rows from ROWS group by filename`.replace(
      'ROWS',
      `read_parquet('${folder}/**/*.parquet', filename = true)`,
    ),
  ))
    expect(rows).toBeLessThanOrEqual(12);
});

test('what cannot be written stays in PostgreSQL, with a line in the log and a metric; the next resync continues', async () => {
  await book(...Array.from({ length: 30 }, (_, place) => rowAt(40, { cost: BigInt(place) })), rowAt(3));
  const plain = createFolder(pathToFileURL(folder).href);
  let writes = 0;
  const archive: Archive = {
    ...plain,
    write: async (path, bytes, signal) => {
      writes += 1;
      if (writes === 2) throw new Error('no space left on device');
      await plain.write(path, bytes, signal);
    },
  };
  const resync = reconciler({ archive, keptDays: 30, size: { ...SIZE, rows: 12, portion: 5 } });
  await resync();
  const { href: url } = pathToFileURL(folder);
  expect(log.lines).toEqual([
    {
      level: 'warn',
      message: 'cannot write days of ledger rows to the archive; they stay in PostgreSQL',
      fields: { archive: url, why: 'no space left on device' },
    },
  ]);
  expect(waiting()).toBe(2);
  expect(await tableOf(40)).toBe(true);
  expect(files()).toHaveLength(1);
  const before = await stored();
  await resync();
  expect(await duck(SUMS)).toEqual(before);
  expect(waiting()).toBe(0);
  expect(await tableOf(40)).toBe(false);
});

test('a day leaves PostgreSQL only if its files, read back, have all its rows', async () => {
  await book(rowAt(40, { cost: 5n }), rowAt(39, { cost: 6n }), rowAt(3));
  await reconciler()();
  const before = await duck(SUMS);
  expect(before).toHaveLength(3);
  const [oldest = '', next = ''] = files();
  const resync = reconciler({ keptDays: 30 });
  const damages = [
    // Another file with as many rows.
    () => writeFileSync(join(folder, oldest), readFileSync(join(folder, next))),
    () => writeFileSync(join(folder, oldest), readFileSync(join(folder, next)).subarray(10)),
    () => writeFileSync(join(folder, oldest), ''),
    () => rmSync(join(folder, oldest)),
  ];
  for (const damage of damages) {
    damage();
    await server.query(connection, 'update gateway_operator.archived_file set is_read_back = false');
    await resync();
    expect(log.lines.at(-1)).toMatchObject({ level: 'warn', fields: { file: oldest } });
    expect([await tableOf(40), await tableOf(39)]).toEqual([true, true]);
    await reconciler()();
  }
  await resync();
  expect([await tableOf(40), await tableOf(39), await tableOf(3)]).toEqual([false, false, true]);
  expect(await duck(SUMS)).toEqual(before);
  // The record of dropped days leaves with them.
  const left = await server.query(connection, 'select day::text from gateway_operator.archived_file');
  expect(left.map(({ day }) => day)).toEqual([dayOf(3)]);
});

test('a row that PostgreSQL has and the file lacks keeps its day, whatever the counts of PostgreSQL show', async () => {
  await book(rowAt(40, { cost: 5n }));
  await reconciler()();
  await book(rowAt(40, { cost: 6n }));
  const counts = `update gateway_operator.archived_file set inserts = pg_stat_get_tuples_inserted(
    'gateway_operator.ledger_row_${dayOf(40).replaceAll('-', '_')}'::regclass) where day = '${dayOf(40)}'`;
  await expect
    .poll(() =>
      server.query(
        connection,
        `select pg_stat_get_tuples_inserted('gateway_operator.ledger_row_${dayOf(40).replaceAll('-', '_')}'::regclass)::int as n`,
      ),
    )
    .toEqual([{ n: 2 }]);
  await server.query(connection, counts);
  const resync = reconciler({ keptDays: 30 });
  await resync();
  expect(await tableOf(40)).toBe(true);
  const before = await stored();
  await resync();
  expect(await tableOf(40)).toBe(false);
  expect(await duck(SUMS)).toEqual(before);
});

test('of several reconcilers one writes', async () => {
  await book(...[3, 4, 5, 6].flatMap((days) => [rowAt(days), rowAt(days)]));
  const plain = createFolder(pathToFileURL(folder).href);
  const written: string[] = [];
  const archive: Archive = {
    ...plain,
    write: async (path, bytes, signal) => {
      written.push(path);
      await plain.write(path, bytes, signal);
    },
  };
  await Promise.all(Array.from({ length: 4 }, () => reconciler({ archive })()));
  await reconciler({ archive })();
  expect(written.toSorted()).toEqual(files());
  expect(files()).toHaveLength(4);
  expect(log.lines).toEqual([]);
});

test('a process that is suspended or killed in the middle of a day: another one continues, and the first changes nothing when it wakes up', async () => {
  await book(...Array.from({ length: 30 }, () => rowAt(3)), rowAt(4));
  const plain = createFolder(pathToFileURL(folder).href);
  const suspended = Promise.withResolvers<void>();
  const awake = Promise.withResolvers<void>();
  let writes = 0;
  const archive: Archive = {
    ...plain,
    write: async (path, bytes, signal) => {
      writes += 1;
      if (writes === 3) {
        suspended.resolve();
        await awake.promise;
      }
      await plain.write(path, bytes, signal);
    },
  };
  const size = { ...SIZE, rows: 12, portion: 5 };
  const first = reconciler({ archive, size })();
  await suspended.promise;
  await reconciler({ size })();
  expect(files()).toHaveLength(2);
  await server.query(connection, `update gateway_operator.archive set leased_until = now() - interval '1 second'`);
  await reconciler({ size })();
  const before = await stored();
  expect(await duck(SUMS)).toEqual(before);
  awake.resolve();
  await first;
  expect(writes).toBe(3);
  expect(await duck(SUMS)).toEqual(before);
  // Its file may be older than the one that it replaced, so it is written again.
  const unsure = await server.query(
    connection,
    'select from_id from gateway_operator.archived_file where row_count is null',
  );
  expect(unsure).toHaveLength(1);
  await reconciler({ size })();
  expect(waiting()).toBe(0);
  expect(log.lines).toEqual([]);
});

test('many rows that name the same long lists of scopes become small row groups, and a file ends by its bytes too', async () => {
  const window = { start: now - 10 * DAY, end: now + 20 * DAY };
  const scopeWindows = Array.from({ length: 90 }, (_, place) => ({ scopeId: scopeNumber(place), window }));
  await book(...Array.from({ length: 60 }, (_, place) => rowAt(3, { cost: BigInt(place), scopeWindows })));
  const groups = `select row_group_id as "group", max(row_group_num_rows)::int as rows
    from parquet_metadata('${folder}/**/*.parquet') group by file_name, row_group_id`;
  await reconciler({ size: { ...SIZE, groupBytes: 100_000 } })();
  const inGroups = (await duck(groups)).map(({ rows }) => Number(rows));
  expect(inGroups.reduce((sum, rows) => sum + rows)).toBe(60);
  expect(Math.max(...inGroups)).toBeLessThan(10);
  expect(files()).toHaveLength(1);
  expect(await duck(SUMS)).toEqual(await stored());
  await server.query(connection, 'delete from gateway_operator.archived_file');
  rmSync(folder, { recursive: true });
  await reconciler({ size: { ...SIZE, groupBytes: 100_000, bytes: 5_000 } })();
  expect(files().length).toBeGreaterThan(3);
  expect(await duck(SUMS)).toEqual(await stored());
  expect(log.lines).toEqual([]);
});

test('a database with texts that no operator wrote is not archived: each of its rows would repeat them', async () => {
  const key = scopeWrite('research');
  await database.putScope(key);
  const scopeWindows = [{ scopeId: key.policy.scopeId, window: { start: now - 10 * DAY, end: now + 20 * DAY } }];
  await book(rowAt(3, { scopeWindows }));
  await server.query(connection, `update gateway_operator.claim set holder_name = repeat('x', 5000)`);
  await reconciler()();
  expect(files()).toEqual([]);
  expect(log.lines).toMatchObject([
    { level: 'warn', fields: { why: expect.stringContaining('a row that this operator did not write (name: ') } },
  ]);
});

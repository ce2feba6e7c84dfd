import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { entryOf } from '#core/ports/entry.fixture.ts';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../test/shared-servers.ts';
import { createDatabase, type Database } from './database.ts';
import { migrate } from './migrate.ts';
import { MIGRATIONS } from './migrations.ts';
import { createSession } from './session.ts';

type Connection = SharedPostgres['connection'];

let server: SharedPostgres;
let connection: Connection;
const open: Array<{ close(): Promise<void> }> = [];

beforeAll(async () => {
  server = await sharedPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((each) => each.close()));
});

beforeEach(async () => {
  connection = await server.createDatabase();
});

const newest = MIGRATIONS.at(-1)?.version ?? 0;

function databaseAt(at: Connection): Database {
  const database = createDatabase(at, { log: createMemoryLog() });
  open.push(database);
  return database;
}

function sessionAt(at: Connection) {
  const session = createSession(at, { log: createMemoryLog() });
  open.push(session);
  return session;
}

const tables = (at: Connection) =>
  server.query<{ name: string }>(
    at,
    `select table_name as name from information_schema.tables where table_schema = 'gateway_operator'`,
  );
const applied = (at: Connection) =>
  server.query<{ version: number; name: string }>(
    at,
    'select version, name from gateway_operator.migration order by version',
  );

test('versions are numbered without gaps and have names', () => {
  expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, place) => place + 1));
  expect(MIGRATIONS.every(({ name }) => name.length > 5)).toBe(true);
});

test('an empty database gets the newest schema, and is told so; the second time nothing is left to do', async () => {
  const database = databaseAt(connection);
  expect(await database.migrate()).toEqual({ from: 0, to: newest });
  expect(await database.migrate()).toEqual({ from: newest, to: newest });
  expect(await applied(connection)).toEqual(MIGRATIONS.map(({ version, name }) => ({ version, name })));
});

test('everything lives in one schema: nothing else in the database is touched', async () => {
  await server.query(connection, 'create table public.entry (mine text)');
  await databaseAt(connection).migrate();
  const elsewhere = await server.query(
    connection,
    `select table_schema, table_name from information_schema.tables
     where table_schema not in ('gateway_operator', 'pg_catalog', 'information_schema')`,
  );
  expect(elsewhere).toEqual([{ table_schema: 'public', table_name: 'entry' }]);
});

test('ten processes that migrate at the same time end with one schema, and all can work', async () => {
  for (let round = 0; round < 5; round += 1) {
    const fresh = await server.createDatabase();
    const databases = Array.from({ length: 10 }, () => databaseAt(fresh));
    const versions = await Promise.all(databases.map((database) => database.migrate()));
    expect(versions.map(({ to }) => to)).toEqual(versions.map(() => newest));
    expect(await applied(fresh)).toHaveLength(MIGRATIONS.length);
    await Promise.all(databases.map((database) => database.book('instance-1', [entryOf()])));
    await Promise.all(databases.map((database) => database.close()));
  }
});

test('a newer schema is left alone, and this version goes on working on it', async () => {
  const session = sessionAt(connection);
  const next = {
    version: newest + 1,
    name: 'a column that only the next version knows',
    sql: `
    alter table gateway_operator.claim add column colour text not null default 'green';
    alter table gateway_operator.entry add column weight bigint;
    create table gateway_operator.later (id text)`,
  };
  expect(await migrate(session, [...MIGRATIONS, next])).toEqual({ from: 0, to: newest + 1 });
  const database = databaseAt(connection);
  expect(await database.migrate()).toEqual({ from: newest + 1, to: newest + 1 });
  await database.openInstance({ uid: 'i', namespace: 'n', name: 'm' });
  expect(await database.claim('i', 'key', 'billing', { uid: 'u', namespace: 'n', name: 'k' })).toMatchObject({
    won: true,
  });
  expect(await database.book('i', [entryOf()])).toEqual({ rejected: [] });
});

test('a schema one version behind is brought forward with its rows', async () => {
  const session = sessionAt(connection);
  const database = databaseAt(connection);
  await database.migrate();
  const entry = entryOf();
  await database.book('i', [entry]);
  const next = {
    version: newest + 1,
    name: 'one more column',
    sql: 'alter table gateway_operator.entry add column weight bigint',
  };
  expect(await migrate(session, [...MIGRATIONS, next])).toEqual({ from: newest, to: newest + 1 });
  expect((await database.bookedOf([entry.id])).get(entry.id)).toEqual([{ kind: 'settled', cost: 100n }]);
});

test('a step that fails leaves the version before it whole', async () => {
  const session = sessionAt(connection);
  const broken = {
    version: newest + 1,
    name: 'half of this works',
    sql: 'create table gateway_operator.half (id text); select no_such_thing',
  };
  await expect(migrate(session, [...MIGRATIONS, broken])).rejects.toThrow(/no_such_thing/);
  expect((await applied(connection)).at(-1)?.version).toBe(newest);
  expect((await tables(connection)).map(({ name }) => name)).not.toContain('half');
  expect(await databaseAt(connection).migrate()).toEqual({ from: newest, to: newest });
});

describe('a role', () => {
  const role = async (rights: (name: string) => string): Promise<Connection> => {
    const name = `role_${Math.random().toString(36).slice(2)}`;
    await server.query(connection, `create role ${name} login password 'secret-of-role'`);
    await server.query(connection, rights(name));
    return { ...connection, username: name, password: 'secret-of-role' };
  };

  test('that may not create a schema is told what to grant, without its password', async () => {
    const limited = await role(() => 'select 1');
    const error = await databaseAt(limited)
      .migrate()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DatabaseUnreachable);
    expect(String(error)).toMatch(
      new RegExp(`does not let "${limited.username}".*grant create on database "${limited.dbname}"`),
    );
    expect(String(error)).not.toContain('secret-of-role');
  });

  test('that may create in the database needs no more than that', async () => {
    const plain = await role((name) => `grant create on database ${connection.dbname} to ${name}`);
    const database = databaseAt(plain);
    expect(await database.migrate()).toEqual({ from: 0, to: newest });
    expect(await database.book('i', [entryOf()])).toEqual({ rejected: [] });
  });

  test('that owns the schema already needs no right on the database', async () => {
    const owner = await role((name) => `create schema gateway_operator authorization ${name}`);
    expect(await databaseAt(owner).migrate()).toEqual({ from: 0, to: newest });
  });
});

test.each(MIGRATIONS.slice(1).map(({ version, name }) => [version, name] as const))(
  'version %i (%s) leaves what the version before it reads and writes as it was, so that a rolling update mixes both',
  async (version) => {
    const migrated = MIGRATIONS.filter((each) => each.version <= version);
    await migrate(sessionAt(connection), migrated.slice(0, -1));
    const [before, promises] = [await columns(connection), await constraints(connection)];
    await migrate(sessionAt(connection), migrated);
    const after = await columns(connection);
    // Nothing is gone or of another kind; what had to be written may be left out now.
    const free = (is: string | undefined) => is?.replace(/^(needed|free) /, '');
    for (const [column, is] of before) {
      expect([column, free(after.get(column))]).toEqual([column, free(is)]);
      if (is.startsWith('free ')) expect([column, after.get(column)]).toEqual([column, is]);
    }
    // What is new in a table of before need not be written.
    const tables = new Set([...before.keys()].map((column) => column.split('.')[0]));
    const added = [...after].filter(([column]) => !before.has(column) && tables.has(column.split('.')[0] ?? ''));
    expect(added.filter(([, is]) => is.startsWith('needed'))).toEqual([]);
    // Nor is anything forbidden there that was allowed.
    const more = [...(await constraints(connection))].filter((one) => !promises.has(one));
    expect(more.filter((one) => tables.has(one.split(' ')[0] ?? ''))).toEqual([]);
  },
);

/** `table.column` → whether an insert must name it, and its type. */
async function columns(at: Connection): Promise<Map<string, string>> {
  const rows = await server.query<{ name: string; is: string }>(
    at,
    `select table_name || '.' || column_name as name,
       case when is_nullable = 'NO' and column_default is null then 'needed ' else 'free ' end || data_type as is
     from information_schema.columns where table_schema = 'gateway_operator'`,
  );
  return new Map(rows.map(({ name, is }) => [name, is]));
}

/** Keys, checks and unique indexes, by table. */
async function constraints(at: Connection): Promise<Set<string>> {
  const rows = await server.query<{ what: string }>(
    at,
    `select t.relname || ' ' || pg_get_constraintdef(c.oid) as what
       from pg_constraint c join pg_class t on t.oid = c.conrelid join pg_namespace n on n.oid = t.relnamespace
       where n.nspname = 'gateway_operator'
     union select t.relname || ' ' || pg_get_indexdef(i.indexrelid)
       from pg_index i join pg_class t on t.oid = i.indrelid join pg_namespace n on n.oid = t.relnamespace
       where n.nspname = 'gateway_operator' and i.indisunique`,
  );
  return new Set(rows.map(({ what }) => what));
}

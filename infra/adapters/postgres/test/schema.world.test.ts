import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { ledgerRowOf } from '#core/ports/test/ledger-row.fixture.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';
import { SCHEMA_VERSION } from '../schema.ts';

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

function databaseAt(at: Connection): Database {
  const database = createDatabase(at, { log: createMemoryLog() });
  open.push(database);
  return database;
}

test('an empty database gets the schema, as the versions show; the second time nothing is left to do', async () => {
  const database = databaseAt(connection);
  expect(await database.migrate()).toEqual({ from: 0, to: SCHEMA_VERSION });
  expect(await database.migrate()).toEqual({ from: SCHEMA_VERSION, to: SCHEMA_VERSION });
});

test('everything lives in one schema: nothing else in the database is touched', async () => {
  await server.query(connection, 'create table public.ledger_row (mine text)');
  await databaseAt(connection).migrate();
  const elsewhere = await server.query(
    connection,
    `select table_schema, table_name from information_schema.tables
     where table_schema not in ('gateway_operator', 'pg_catalog', 'information_schema')`,
  );
  expect(elsewhere).toEqual([{ table_schema: 'public', table_name: 'ledger_row' }]);
});

test('ten processes that migrate at the same time end with one schema, and all can work', async () => {
  for (let round = 0; round < 5; round += 1) {
    const fresh = await server.createDatabase();
    const databases = Array.from({ length: 10 }, () => databaseAt(fresh));
    const versions = await Promise.all(databases.map((database) => database.migrate()));
    expect(versions.map(({ to }) => to)).toEqual(versions.map(() => SCHEMA_VERSION));
    expect(await server.query(fresh, 'select version from gateway_operator.migration')).toEqual([
      { version: SCHEMA_VERSION },
    ]);
    await Promise.all(databases.map((database) => bookLedgerRows(database, 'instance-1', [ledgerRowOf()])));
    await Promise.all(databases.map((database) => database.close()));
  }
});

test.each([SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])(
  'a schema of version %i is refused in one sentence, and left as it is',
  async (version) => {
    await databaseAt(connection).migrate();
    await server.query(connection, `update gateway_operator.migration set version = ${version}`);
    const refused = databaseAt(connection).migrate();
    await expect(refused).rejects.toThrow(DatabaseUnreachable);
    await expect(refused).rejects.toThrow(`has version ${version} of the schema gateway_operator, this operator needs`);
    const [row] = await server.query(connection, 'select version from gateway_operator.migration');
    expect(row).toEqual({ version });
    // A gateway joins no store of an instance that is kept otherwise.
    const joining = databaseAt(connection).epochs('instance-1', ONE_STORE).heartbeat('process-1', 0);
    const made = version > SCHEMA_VERSION ? 'a later' : 'an earlier';
    await expect(joining).rejects.toThrow(`this operator needs ${SCHEMA_VERSION}: ${made} version made it`);
  },
);

test('a schema that cannot be made whole is not made at all', async () => {
  await server.query(connection, 'create schema gateway_operator; create table gateway_operator.sum (mine text)');
  await expect(databaseAt(connection).migrate()).rejects.toThrow(/"sum" already exists/);
  const tables = `select table_name as name from information_schema.tables where table_schema = 'gateway_operator'`;
  expect(await server.query(connection, tables)).toEqual([{ name: 'sum' }]);
  await server.query(connection, 'drop table gateway_operator.sum');
  expect(await databaseAt(connection).migrate()).toEqual({ from: 0, to: SCHEMA_VERSION });
});

describe('a role', () => {
  const role = async (rights: (name: string) => string): Promise<Connection> => {
    const name = `role_${Math.random().toString(36).slice(2)}`;
    await server.query(connection, `create role ${name} login password 'secret-of-role'`);
    await server.query(connection, rights(name));
    return { ...connection, username: name, password: 'secret-of-role' };
  };

  test('that may not create a schema: the error says what to grant, without the password', async () => {
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
    expect(await database.migrate()).toEqual({ from: 0, to: SCHEMA_VERSION });
    expect(await bookLedgerRows(database, 'i', [ledgerRowOf()])).toEqual({ rejected: [] });
  });

  test('that owns the schema already needs no right on the database', async () => {
    const owner = await role((name) => `create schema gateway_operator authorization ${name}`);
    expect(await databaseAt(owner).migrate()).toEqual({ from: 0, to: SCHEMA_VERSION });
  });
});

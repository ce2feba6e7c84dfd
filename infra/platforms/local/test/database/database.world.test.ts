import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startPostgres } from '../../../../../test/support/postgres.ts';
import { silentLog } from '../../../../../test/support/silent-log.ts';
import { startTestStack } from '../../../../../test/support/stack.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { openDatabase } from '../../database/database.ts';
import { readOptions } from '../../options.ts';
import type { Program } from '../../state/children.ts';
import { freePort } from '../../state/ports.ts';
import { openState } from '../../state/state.ts';

test('a remembered port that another process takes a moment before PostgreSQL does is replaced by another', async () => {
  const folder = join(temporaryFolder(), 'state');
  const options = readOptions(['--state', folder]) ?? expect.fail();
  const state = await openState(folder, false);
  const remembered = await freePort(0, 'any');
  state.rememberPort('database', remembered);
  const others: Server[] = [];
  const start = (program: Program) => {
    const port = Number(program.args[program.args.indexOf('-p') + 1]);
    if (port === remembered) others.push(createServer().listen(port, '127.0.0.1'));
    return state.children.start(program);
  };
  const stops: (() => Promise<unknown>)[] = [];
  try {
    const { connection } = await openDatabase({
      options,
      state: { ...state, children: { ...state.children, start } },
      log: silentLog,
      onStop: (stop) => void stops.push(stop),
    });
    expect(others).toHaveLength(1);
    expect(connection.port).not.toBe(remembered);
    expect(state.remembered.ports.database).toBe(connection.port);
  } finally {
    for (const stop of stops) await stop();
    for (const other of others) other.close();
    state.release();
  }
});

test('a database that was named holds nothing of the embedded cluster', async () => {
  const postgres = await startPostgres();
  const database = await postgres.createDatabase();
  const { host, port, username, password, dbname } = database;
  const stack = await startTestStack(['--database', `postgres://${username}:${password}@${host}:${port}/${dbname}`]);
  const tables = await postgres.query<{ name: string; schema: string }>(
    database,
    `select format('%I.%I', schemaname, tablename) as name, schemaname as schema
       from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  const texts = tables.map(({ name }) =>
    postgres.query<{ row: string }>(database, `select t::text as row from ${name} t`),
  );
  const rows = (await Promise.all(texts)).flat().map(({ row }) => row);
  const secrets = [...stack.secretValues];
  expect(await stack.stop()).toBe(0);
  await postgres.stop();
  // The ledger is there, and what Secrets hold is known.
  expect(rows.join('\n')).toContain('example-service');
  expect(secrets.length).toBeGreaterThan(3);
  expect(secrets.filter((secret) => rows.some((row) => row.includes(secret)))).toEqual([]);
  expect(new Set(tables.map(({ schema }) => schema)).size).toBe(1);
});

import { expect, test } from 'vitest';
import { startPostgres } from '../../../../../test/support/postgres.ts';
import { startTestStack } from '../../../../../test/support/stack.ts';

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

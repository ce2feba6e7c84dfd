// Instances with more claims than one transaction may change.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase, type Database } from '../database.ts';

const CLAIMS = 12_000;
const ROW = { uid: 'i', namespace: 'n', name: 'n', cluster: 'c' };

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let database: Database;

beforeAll(async () => {
  server = await sharedPostgres();
  connection = await server.migratedDatabase();
  database = createDatabase(connection, { log: createMemoryLog() });
  await database.openInstance(ROW);
  await run(`insert into gateway_operator.claim (instance_uid, kind, alias, holder_uid, holder_namespace, holder_name)
    select 'i', 'key', n::text, n::text, 'n', n::text from generate_series(1, ${CLAIMS}) n`);
});
afterAll(() => database?.close());

const run = (text: string) => server.query(connection, text);
const live = () => run('select 1 from gateway_operator.claim where retired_at is null').then(({ length }) => length);

test('a database whose trigger undoes what was done is distinguished from a database that keeps it; later the same instance is closed', async () => {
  await run(`create function undo() returns trigger language plpgsql as 'begin return null; end'`);
  await run('create trigger never before update on gateway_operator.claim for each row execute function undo()');
  await expect(database.closeInstance('i')).rejects.toThrow('drop the trigger or rule');
  expect(await live()).toBe(CLAIMS);
  // The resync of any other instance finds what is left to do.
  expect(await database.openInstances('c')).toEqual([ROW]);
  await run('drop trigger never on gateway_operator.claim');
  await database.closeInstance('i');
  expect(await live()).toBe(0);
  expect(await database.openInstances('c')).toEqual([]);
});

test('two that close the same instance concurrently both succeed', async () => {
  await database.openInstance(ROW);
  await run('update gateway_operator.claim set retired_at = null');
  await Promise.all([database.closeInstance('i'), database.closeInstance('i')]);
  expect(await live()).toBe(0);
});

test('claims whose policies are large are read all, whatever they weigh together', async () => {
  await run('delete from gateway_operator.claim');
  await run(`insert into gateway_operator.claim (instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, policy, digest)
    select 'i', 'key', n::text, n::text, 'n', n::text, made, made from generate_series(1, 1300) n, lateral json_build_object(
      'scopeId', n::text, 'kind', 'key', 'name', 'x', 'tags', array[repeat('x', case when n > 800 then 60000 else 10 end)]) made`);
  expect(await database.claims('i')).toHaveLength(1300);
  const aliases = Array.from({ length: 1300 }, (_, index) => ({ kind: 'key' as const, alias: `${index + 1}` }));
  const found = await database.claimsOf('i', aliases);
  expect(new Set(found.map(({ alias }) => alias)).size).toBe(1300);
});

test('records of keys are found all, in replies of 256 KiB or one record, and the smallest are answered first', async () => {
  await database.openInstance(ROW);
  await run(`insert into gateway_operator.key_value (scope_id, hash)
    select scope_id, 'hash ' || alias from gateway_operator.claim where alias::integer > 700`);
  await run(`insert into gateway_operator.claim (instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, policy)
    values ('i', 'namespace', 'n', 'namespace', 'n', 'n', '{}')`);
  const hashes = Array.from({ length: 600 }, (_, index) => `hash ${index + 701}`);
  const policies = database.policies('i');
  const portions: string[][] = [];
  for (let unread = hashes; unread.length > 0; ) {
    const answers = await policies.find(unread);
    expect([...answers.values()]).not.toContain(undefined);
    const read = unread.filter((hash) => answers.get(hash)?.key !== undefined);
    const bytes = read.reduce((sum, hash) => sum + JSON.stringify(answers.get(hash)?.scopes).length, 0);
    expect(read.length === 1 || bytes <= 256 * 1024).toBe(true);
    portions.push(read);
    unread = unread.filter((hash) => !read.includes(hash));
  }
  expect(portions.length).toBeGreaterThan(1);
  expect(portions.flat()).toHaveLength(600);
  expect(new Set(portions.flat().slice(0, 100))).toEqual(new Set(hashes.slice(0, 100)));
});

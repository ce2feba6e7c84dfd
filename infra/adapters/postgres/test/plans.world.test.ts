// Plans and touched blocks of the hot statements, with ten thousand ledger rows and with a million.
import { beforeAll, expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { BUSY, fillWith, idOf, WINDOW } from '../../../../test/ledger/many-ledger-rows.ts';
import { type BlockCount, hotStatements, touchedBy } from '../../../../test/ledger/touched-blocks.ts';
import { recount } from '../../../../test/support/recount.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createDatabase } from '../database.ts';
import { createSession } from '../session.ts';

const FEW = 10_000;
const MANY = 1_000_000;

let server: SharedPostgres;
let connection: SharedPostgres['connection'];
let few: ReadonlyMap<string, BlockCount>;
let many: ReadonlyMap<string, BlockCount>;

beforeAll(async () => {
  server = await sharedPostgres();
  const small = await server.createDatabase();
  await fillWith(FEW, small);
  few = await touchedBy(hotStatements(FEW), small, true);
  connection = await server.createDatabase();
  await fillWith(MANY, connection);
  many = await touchedBy(hotStatements(MANY), connection, false);
});

const of = (touched: ReadonlyMap<string, BlockCount>, name: string): BlockCount => {
  const found = touched.get(name);
  if (found === undefined) throw new Error(`nothing was measured of: ${name}`);
  return found;
};

test.each(hotStatements(MANY).map(({ name, lookups }) => [name, lookups] as const))(
  'a hundred times as many keys and ledger rows cost no more than a level of an index: %s',
  (name, lookups) => {
    const [before, after] = [of(few, name), of(many, name)];
    expect(after.blocks).toBeLessThanOrEqual(before.blocks + lookups);
    // These tables have one row for each instance, or for each edited scope.
    const small = ['instance', 'recount', 'store_epoch', 'gateway_process'];
    expect(after.wholly.filter((table) => !small.includes(table))).toEqual([]);
  },
);

test.each([
  ['find a key with its policy', 25],
  ['find an unknown key', 10],
  ['load three counters', 30],
  ['enter a batch of an account', 15],
  ['rows of 20 accounts', 250],
  ['recount 30 days of the busy team, without the edges', 900],
  ['the edges of two windows of the busy team in one hour', 1000],
])('with a million ledger rows, %s: less than %i blocks of 8 KiB', (name, maxBlocks) => {
  expect(of(many, name).blocks).toBeLessThan(maxBlocks);
});

test('which ledger rows an id has is looked up in its own day only', async () => {
  const [question] = hotStatements(MANY).filter(({ name }) => name.startsWith('which of 20 ids'));
  if (question === undefined) throw new Error('it is not asked any more');
  const ids = [idOf(MANY / 2, MANY), idOf(MANY / 2 + 1, MANY)];
  const asked = [{ ...question, values: [ids, ids[0], ids[1]] }];
  const [{ days } = { days: [] }] = [...(await touchedBy(asked, connection, false)).values()];
  expect(days).toEqual([expect.stringMatching(/^ledger_row_2026_08_\d\d$/)]);
});

test('a recount of 30 days of a scope with half a million ledger rows is right', async () => {
  const window = { start: WINDOW.end - 45 * 86_400_000 - 1000, end: WINDOW.end - 15 * 86_400_000 - 1000 };
  const session = createSession(connection, { log: createMemoryLog() });
  await session.transaction(10_000, (query) => recount(query, 'instance-1', [{ scopeId: BUSY, window }]));
  await session.close();
  const database = createDatabase(connection, { log: createMemoryLog() });
  const [{ spent } = { spent: 0n }] = await database.sums([{ scopeId: BUSY, window }]);
  await database.close();
  const [truth] = await server.query<{ cost: string }>(
    connection,
    `select sum(cost)::text as cost from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id
      where scope_ids @> array[$1::uuid] and settled_at >= to_timestamp($2 / 1000.0)
      and settled_at < to_timestamp($3 / 1000.0)`,
    [BUSY, window.start, window.end],
  );
  expect(Number(truth?.cost)).toBeGreaterThan(500_000);
  expect(`${spent}`).toBe(truth?.cost);
});

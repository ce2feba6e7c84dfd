// Do the statements stay cheap however many keys and entries there are? Plans and touched blocks on a large database.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../../../test/postgres.ts';
import { createMemoryLog } from '../memory/log.ts';
import { BOOK, toColumns } from './book.ts';
import { BOOKED, SUMS } from './books.ts';
import { createDatabase } from './database.ts';
import { leastId } from './months.ts';
import { FIND } from './policies.ts';
import { edgesOf, RECOUNT } from './recount.ts';

const KEYS = 100_000;
const ENTRIES = 200_000;
const DAY = 86_400_000;
/** The entries lie evenly in the four months before this; every second one is charged to the busy team. */
const END = Date.UTC(2026, 10, 1);
const MONTHS = [6, 7, 8, 9, 10].map((month) => Date.UTC(2026, month, 1));
const BUSY = '00000000-0000-7000-8000-000000000001';

let server: TestPostgres;
let connection: TestPostgres['connection'];

beforeAll(async () => {
  server = await startPostgres();
  connection = await server.createDatabase();
  const database = createDatabase(connection, { log: createMemoryLog() });
  await database.migrate();
  await database.openInstance({ uid: 'instance-1', namespace: 'apps', name: 'gateway' });
  // One entry a month makes the partitions.
  await database.book(
    'instance-1',
    MONTHS.map((time) => ({ ...sample, id: uuid(time, 0) })),
  );
  await database.close();
  await server.query(
    connection,
    `
    insert into gateway_operator.claim (scope_id, instance_uid, kind, alias, holder_uid, holder_namespace, holder_name, policy, charges)
    select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'instance-1', 'key', 'key-' || n, 'uid-' || n, 'apps', 'key-' || n,
      json_build_object('name', 'key-' || n), array['${BUSY}'::uuid]
    from generate_series(1, ${KEYS}) n`,
  );
  await server.query(
    connection,
    `
    insert into gateway_operator.key_value (scope_id, hash)
    select scope_id, encode(sha256(alias::bytea), 'hex') from gateway_operator.claim`,
  );
  await server.query(
    connection,
    `
    create temp table made as select n,
      (${MONTHS[0]} + n::bigint * ${END - (MONTHS[0] ?? 0)} / ${ENTRIES}) as time,
      ('00000000-0000-7000-8000-' || lpad(to_hex(2 + n % 50000), 12, '0'))::uuid as scope_id
    from generate_series(1, ${ENTRIES - 1}) n;
    create temp table made_id as select *, (lpad(to_hex(time), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'))::uuid as id from made;
    insert into gateway_operator.entry select id, 'settled', 'instance-1', 5, 1, 1, 0, 0, 'small', 'small-1', false, to_timestamp(time / 1000.0) from made_id;
    insert into gateway_operator.charge select scope_id, id, 'settled', ${MONTHS[0]}, ${END}, 5 from made_id;
    insert into gateway_operator.charge select '${BUSY}', id, 'settled', ${MONTHS[0]}, ${END}, 5 from made_id where n % 2 = 0;
    insert into gateway_operator.sum select scope_id, window_start, window_end, sum(cost) from gateway_operator.charge group by 1, 2, 3;
    insert into gateway_operator.hour_sum
      select scope_id, ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 3600000, sum(cost)
      from gateway_operator.charge group by 1, 2`,
  );
  await server.query(connection, 'vacuum analyze');
});

afterAll(() => server.stop());

const sample = {
  id: uuid(END - 1, 1),
  kind: 'settled' as const,
  charges: [],
  cost: 5n,
  tokens: { input: 1, output: 1, cachedInput: 0, cacheWrite: 0 },
  model: 'small',
  identifier: 'small-1',
  estimated: false,
  settledAt: END,
};

function uuid(time: number, tail: number): string {
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-f${tail.toString(16).padStart(11, '0')}`;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: ReadonlyArray<PlanNode>;
}

/** Which tables were read whole, how many partitions were looked into, and how many blocks were touched in all. */
async function explain(text: string, values: unknown[]) {
  const rows = await server.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
    connection,
    `explain (analyze, buffers, format json) ${text}`,
    values,
  );
  const plan = rows[0]?.['QUERY PLAN'][0].Plan;
  if (plan === undefined) throw new Error('no plan');
  const nodes: PlanNode[] = [];
  const walk = (node: PlanNode) => {
    nodes.push(node);
    node.Plans?.forEach(walk);
  };
  walk(plan);
  const relations = nodes.flatMap((node) => (node['Actual Loops'] > 0 ? (node['Relation Name'] ?? []) : []));
  return {
    wholly: nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name']),
    months: new Set(relations.filter((name) => /_\d{4}_\d\d$/.test(name))),
    blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
  };
}

test('a key is found by its hash through indexes alone, whatever the number of keys', async () => {
  const [row] = await server.query<{ hash: string }>(
    connection,
    `select encode(sha256('key-77777'::bytea), 'hex') as hash`,
  );
  const { wholly, blocks } = await explain(FIND.text, [row?.hash, 'instance-1']);
  expect(wholly.filter((name) => name !== 'instance')).toEqual([]);
  expect(blocks).toBeLessThan(25);
});

test('an unknown hash costs no more', async () => {
  const { wholly, blocks } = await explain(FIND.text, ['0'.repeat(64), 'instance-1']);
  expect(wholly.filter((name) => name !== 'instance')).toEqual([]);
  expect(blocks).toBeLessThan(10);
});

test('the sum of a window is one look-up, whatever was booked in it', async () => {
  const { wholly, blocks } = await explain(SUMS.text, [[BUSY], [MONTHS[0]], [END]]);
  expect(wholly).toEqual([]);
  expect(blocks).toBeLessThan(10);
});

test('which kinds an id has is looked up in its own month only', async () => {
  const ids = [uuid(Date.UTC(2026, 8, 15), 1), uuid(Date.UTC(2026, 8, 16), 2)];
  const { wholly, months, blocks } = await explain(BOOKED.text, [ids, ...idRange(ids)]);
  expect(wholly).toEqual([]);
  expect([...months]).toEqual(['entry_2026_09']);
  expect(blocks).toBeLessThan(20);
});

test('a recount of 30 days reads the hours of one scope and two edges, not its fifty thousand entries', async () => {
  const window = { start: END - 45 * DAY - 1234, end: END - 15 * DAY - 1234 };
  const values = [BUSY, window.start, window.end, ...edgesOf(window)];
  const { wholly, months, blocks } = await explain(RECOUNT.text, values);
  expect(wholly).toEqual([]);
  expect(months.size).toBeLessThanOrEqual(2);
  // 720 hours, each at worst in a block of its own.
  expect(blocks).toBeLessThan(800);
  const [truth] = await server.query<{ exact: string; counted: string }>(
    connection,
    `select (select sum(cost) from gateway_operator.charge where scope_id = $1 and id >= $2 and id < $3)::text as exact,
      (select amount from gateway_operator.sum where scope_id = $1 and window_start = $4)::text as counted`,
    [BUSY, leastId(window.start), leastId(window.end), window.start],
  );
  expect(Number(truth?.exact)).toBeGreaterThan(100_000);
  expect(truth?.counted).toBe(truth?.exact);
});

test('booking touches blocks by the size of the batch, not by what is there', async () => {
  const window = { start: MONTHS[0] ?? 0, end: END };
  const entries = Array.from({ length: 100 }, (_, place) => ({
    ...sample,
    id: uuid(END - 1000 + place, 100 + place),
    charges: [{ scopeId: BUSY, window }],
  }));
  const { wholly, blocks } = await explain(BOOK, ['instance-1', ...toColumns(entries)]);
  expect(wholly.filter((name) => name !== 'recount')).toEqual([]);
  expect(blocks).toBeLessThan(100 * 15);
});

function idRange(ids: ReadonlyArray<string>): [string | undefined, string | undefined] {
  return [ids[0], ids.at(-1)];
}

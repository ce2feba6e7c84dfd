// Blocks touched by each statement of requests, bookings and resyncs.
import { createHash } from 'node:crypto';
import pg from 'pg';
import { createAdditions } from '#adapters/postgres/additions.ts';
import { BY_ID, hourOf, valuesOf } from '#adapters/postgres/hour-parts.ts';
import { ADD_SUMS, INSERT_ROWS, toRowColumns } from '#adapters/postgres/insert-batch.ts';
import { ACCOUNT_ROWS, EXPIRED_ROWS, RECORD_BATCH } from '#adapters/postgres/ledger-database.ts';
import { SELECT_BOOKED, SUMS } from '#adapters/postgres/ledger-queries.ts';
import { ABSENT_SETS, createSets, INSERT_SETS, sortSets, toSetColumns } from '#adapters/postgres/ledger-sets.ts';
import { FIND } from '#adapters/postgres/policies.ts';
import { RECOUNT, recountRows } from '#adapters/postgres/recount.ts';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import {
  accountNumber,
  aliasOf,
  BUSY,
  END,
  INSTANCE,
  idOf,
  keyNumber,
  keysOf,
  newLedgerRow,
  WINDOW,
} from './many-ledger-rows.ts';

export interface BlockCount {
  readonly blocks: number;
  readonly millis: number;
  /** Tables read by a sequential scan. */
  readonly wholly: ReadonlyArray<string>;
  /** Partitions that were read. */
  readonly days: ReadonlyArray<string>;
}

interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: ReadonlyArray<unknown>;
  /** Runs before, in the same transaction, and is not measured. */
  readonly before?: { readonly text: string; readonly values: ReadonlyArray<unknown> };
  /** Index look-ups by the size of the query: an index with one more level may add as many blocks. */
  readonly lookups: number;
}

/** In a small index some ids share a block. */
const NEIGHBOURS = 20;
/**
 * Look-ups of a new ledger row: its existence, the row, its set in an index, and its scope's recount, sum and hour, each
 * found and written.
 */
const PER_LEDGER_ROW = 10;
/** Look-ups of a new set: its existence, the row, and each of its scopes. */
const PER_SET = 4;
const DAY = 86_400_000;
const DAYS_30 = { start: END - 45 * DAY - 1000, end: END - 15 * DAY - 1000 };

/** The statements as sent, for a database with `rowCount` ledger rows (many-ledger-rows.ts). */
export function hotStatements(rowCount: number): ReadonlyArray<Statement> {
  const keys = keysOf(rowCount);
  // Spread over all ledger rows, the same in every run.
  const some = (count: number, of: number) =>
    Array.from({ length: count }, (_, index) => 1 + Math.floor(((index + 0.5) * (of - 2)) / count));
  const scopes = (count: number) => some(count, keys).map(keyNumber);
  const sums = (of: ReadonlyArray<string>) => [of, of.map(() => WINDOW.start), of.map(() => WINDOW.end)];
  // Of one day: each day is asked for its own ids.
  const perDay = (rowCount * DAY) / (WINDOW.end - WINDOW.start);
  const ids = some(20, perDay).map((number) => idOf(Math.ceil(60 * perDay) + number, rowCount));
  const batch = (count: number) =>
    scopes(count).map((scopeId) => newLedgerRow([scopeId, BUSY].map((each) => ({ scopeId: each, window: WINDOW }))));
  const newSets = sortSets(createSets(INSTANCE).of(batch(1000)));
  const accounts = some(20, keys).map(accountNumber);
  const hash = createHash('sha256')
    .update(aliasOf(Math.floor(keys / 2)))
    .digest('hex');
  return [
    { lookups: 6, name: 'find a key with its policy', text: FIND, values: [[hash], INSTANCE, 4096] },
    { lookups: 1, name: 'find an unknown key', text: FIND, values: [['0'.repeat(64)], INSTANCE, 4096] },
    // Each counter is also looked up in the index of rejected rows, which a small table is read without.
    { lookups: 6 * 3, name: 'load three counters', text: SUMS, values: sums([...scopes(2), BUSY]) },
    { lookups: 6 * 500, name: 'sums of 500 counters: a page of an audit', text: SUMS, values: sums(scopes(500)) },
    {
      // In a day of the small database, all ids share a block of the index, and most share one of the table.
      lookups: 20 + 2 * NEIGHBOURS,
      name: 'which of 20 ids are booked: an audit, a recovery',
      text: SELECT_BOOKED,
      values: [ids, ids[0], ids.at(-1)],
    },
    {
      lookups: 3 * 500,
      name: 'insert them once more: all are there',
      ...insertionOf(booked(rowCount)),
    },
    {
      lookups: 4,
      name: 'enter a batch of an account',
      text: RECORD_BATCH,
      values: [INSTANCE, accounts[9], 2, 20, 1, false],
    },
    {
      lookups: 1000 + NEIGHBOURS,
      name: 'which sets of a thousand ledger rows are missing',
      text: ABSENT_SETS,
      values: [newSets.map(({ id }) => id), newSets[0]?.id, newSets.at(-1)?.id],
    },
    {
      lookups: PER_SET * 1000,
      name: 'insert the sets of a thousand ledger rows',
      text: INSERT_SETS,
      values: [INSTANCE, ...toSetColumns(newSets)],
    },
    {
      lookups: PER_LEDGER_ROW * 1000,
      name: 'insert a thousand ledger rows of an account',
      ...insertionOf(batch(1000)),
    },
    {
      lookups: PER_LEDGER_ROW * 1000,
      name: 'add a thousand ledger rows of an account',
      text: ADD_SUMS,
      values: [...additionsOf(batch(1000)), INSTANCE, 1, 5],
    },
    {
      lookups: 2 * 20 + NEIGHBOURS,
      name: 'rows of 20 accounts',
      text: ACCOUNT_ROWS,
      values: [INSTANCE, accounts, accounts[0], accounts.at(-1)],
    },
    {
      lookups: 3 + NEIGHBOURS,
      name: 'expired rows of an account',
      text: EXPIRED_ROWS,
      values: [INSTANCE, accounts[0], null, null, null, 10_000],
    },
    {
      lookups: 30 * 24 + 5,
      name: 'recount 30 days of the busy team, without the edges',
      text: RECOUNT,
      values: [recountRows([{ scopeId: BUSY, window: DAYS_30 }], 0, new Map())],
    },
    {
      // The rows of an hour, and the two sets of each of its keys, which have ten rows each.
      lookups: 5 + Math.ceil(perDay / 24 / 70) + 2 * Math.ceil(perDay / 24 / 10) * 3,
      name: 'the edges of two windows of the busy team in one hour',
      text: BY_ID,
      values: valuesOf(edgesOf(DAYS_30.start)),
    },
  ];
}

/** An hour of the busy team, in which two windows begin. */
const edgesOf = (time: number) => ({ scopeId: BUSY, hour: hourOf(time), times: [time, time + 600_000] });

/** The statement that inserts these rows, whose sets are there. */
function insertionOf(rows: ReadonlyArray<LedgerRow>): Pick<Statement, 'text' | 'values' | 'before'> {
  const sets = createSets(INSTANCE);
  const values = toRowColumns(rows, sets.idOf);
  const before = { text: INSERT_SETS, values: [INSTANCE, ...toSetColumns(sortSets(sets.of(rows)))] };
  return { text: INSERT_ROWS, values, before };
}

/** The values of the only statement of a small batch. */
function additionsOf(rows: ReadonlyArray<LedgerRow>): ReadonlyArray<unknown> {
  const additions = createAdditions();
  additions.add(rows);
  return [...additions.portions()].flatMap(({ columns }) => columns);
}

/** A batch that is repeated because its answer was lost. */
const booked = (rowCount: number) =>
  Array.from({ length: 500 }, (_, place) => ({
    ...newLedgerRow([{ scopeId: BUSY, window: WINDOW }]),
    id: idOf(1 + Math.floor((place * (rowCount - 2)) / 500), rowCount),
  }));

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: ReadonlyArray<PlanNode>;
}

/** Each row is looked up in an index, as in a large table; of a small one the planner would read all. */
const LOOKING_UP = 'set local enable_seqscan = off; set local enable_mergejoin = off; set local enable_hashjoin = off';

/**
 * Runs all statements and rolls back. `byIndex` looks rows up in indexes even where the planner would read small tables
 * whole.
 */
export async function touchedBy(
  asked: ReadonlyArray<Statement>,
  connection: DatabaseConnection,
  byIndex: boolean,
): Promise<ReadonlyMap<string, BlockCount>> {
  const { host, port, username: user, password, dbname } = connection;
  const client = new pg.Client({ host, port, user, password, database: dbname });
  await client.connect();
  try {
    const touched = new Map<string, BlockCount>();
    for (const each of asked) {
      const plan = 'set local plan_cache_mode = force_custom_plan';
      const settings = byIndex ? `${plan}; ${LOOKING_UP}` : plan;
      touched.set(each.name, await explain(client, each, settings));
    }
    return touched;
  } finally {
    await client.end();
  }
}

async function explain(client: pg.Client, { text, values, before }: Statement, settings: string): Promise<BlockCount> {
  await client.query(`begin; ${settings}; prepare asked as ${text}`);
  if (before !== undefined) await client.query(before.text, [...before.values]);
  const explained = `explain (analyze, buffers, format json) execute asked(${values.map(toLiteral).join(', ')})`;
  // The first run also reads a table's catalog.
  await client.query(`savepoint first; ${explained}; rollback to first`);
  const result = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode; 'Execution Time': number }] }>(explained);
  await client.query('rollback; deallocate asked');
  const [explanation] = result.rows[0]?.['QUERY PLAN'] ?? [];
  if (explanation === undefined) throw new Error('no plan');
  const nodes = nodesOf(explanation.Plan).filter((node) => node['Actual Loops'] > 0);
  const relations = nodes.flatMap((node) => node['Relation Name'] ?? []);
  return {
    blocks: explanation.Plan['Shared Hit Blocks'] + explanation.Plan['Shared Read Blocks'],
    millis: explanation['Execution Time'],
    wholly: nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'] ?? ''),
    days: [...new Set(relations.filter((name) => /_\d{4}_\d\d_\d\d$/.test(name)))],
  };
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

function toLiteral(value: unknown): string {
  if (Array.isArray(value)) return `'{${value.join(',')}}'`;
  return typeof value === 'string' ? `'${value}'` : String(value);
}

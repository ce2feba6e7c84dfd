// The ledger rows of a day, as the archive has them: portions in the order of their ids, and what they add up to.
import * as z from 'zod';
import type { ArchivedRow, ArchivedScope, RowFigures } from '#core/ports/archive.ts';
import { DAY, lowestId } from './partitions.ts';
import { checkRows, toNano, Uuid } from './row.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

/** The ids of a file: from the first up to, but not including, the last. */
export interface IdRange {
  readonly from: string;
  readonly until: string;
}

/**
 * Reads the first rows of a range, at least `count` if there are so many: all rows of an id, which has at most three,
 * are read together.
 */
export async function readRows(
  session: Session,
  { from, until }: IdRange,
  count: number,
): Promise<ReadonlyArray<ArchivedRow>> {
  const rows = await session.transaction(LIMIT, async (query) => {
    await query(BY_INDEX);
    return checkRows(StoredRowSchema, await query<StoredRow>(ROWS, [from, until, count, ...dayOf(from)]));
  });
  const lists = new Map(rows.map(({ scopeIds }) => [scopeIds, scopeIds.slice(1, -1).split(',')]));
  const scopes = await readScopes(session, new Set([...lists.values()].flat()));
  const scopesOf = new Map(
    [...lists].map(([text, ids]) => [text, ids.filter((id) => id !== '').map((id) => scopes.get(id) ?? { id })]),
  );
  return rows.map(({ cost, input, output, cachedInput, cacheWrite, scopeIds, ...row }) => ({
    ...row,
    cost: BigInt(cost),
    tokens: {
      input: Number(input),
      output: Number(output),
      cachedInput: Number(cachedInput),
      cacheWrite: Number(cacheWrite),
    },
    scopes: scopesOf.get(scopeIds) ?? [],
  }));
}

// A tenant's database may answer anything. A name has at most 256 characters, and a row far fewer than 256 scopes.
const Text = z.string().max(1024);
const Int64Text = z.string().regex(/^-?\d{1,19}$/);

const StoredRowSchema = z.object({
  id: Uuid,
  kind: z.enum(['settled', 'expired', 'correction']),
  instanceUid: Text,
  instance: Text,
  cost: Int64Text,
  input: Int64Text,
  output: Int64Text,
  cachedInput: Int64Text,
  cacheWrite: Int64Text,
  model: Text,
  identifier: Text,
  estimated: z.boolean(),
  settledAt: z.int(),
  /** PostgreSQL's array text. */
  scopeIds: z.string().regex(/^\{([0-9a-f-]{36}(,[0-9a-f-]{36}){0,255})?\}$/),
});
type StoredRow = z.output<typeof StoredRowSchema>;

const ScopeSchema = z.object({ id: Uuid, kind: Text, alias: Text, namespace: Text, name: Text });
type StoredScope = z.output<typeof ScopeSchema>;

/** The lowest ids of the day of this id, and of the next day: a set is of the day of its rows. */
function dayOf(id: string): readonly [from: string, until: string] {
  const day = Math.floor(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) / DAY);
  return [lowestId(day * DAY), lowestId((day + 1) * DAY)];
}

/** Without statistics of the day, PostgreSQL would sort all of its rows, or hash all of its sets, for each portion. */
const BY_INDEX = ['sort', 'seqscan', 'bitmapscan', 'hashjoin', 'mergejoin']
  .map((way) => `set local enable_${way} = off`)
  .join('; ');

const ROWS = `
select r.id::text, r.kind, s.instance_uid as "instanceUid", coalesce(i.namespace || '/' || i.name, '') as instance, r.cost::text,
  r.input_tokens::text as input, r.output_tokens::text as output, r.cached_input_tokens::text as "cachedInput",
  r.cache_write_tokens::text as "cacheWrite", s.model, s.identifier, s.estimated,
  (extract(epoch from r.settled_at) * 1000)::float8 as "settledAt", s.scope_ids::text as "scopeIds"
from gateway_operator.ledger_row r join gateway_operator.ledger_set s on s.id = r.set_id and s.id >= $4::uuid and s.id < $5::uuid
  left join gateway_operator.instance i on i.uid = s.instance_uid
where r.id >= $1::uuid and r.id < $2::uuid order by r.id fetch first $3 rows with ties`;

/** Further windows and budgets for models have no claim (decision 0014): of these only the id is known. */
async function readScopes(session: Session, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, ArchivedScope>> {
  const found = await session.query<StoredScope>(LIMIT, SCOPES, [[...ids].filter((id) => id !== '')]);
  return new Map(checkRows(ScopeSchema, found).map((scope) => [scope.id, scope]));
}

const SCOPES = `
select scope_id::text as id, kind, alias, holder_namespace as namespace, holder_name as name
from gateway_operator.claim where scope_id = any($1::uuid[])`;

/** Adds up the rows of a range. */
export async function readFigures(query: Query, { from, until }: IdRange): Promise<RowFigures> {
  const [row] = await query<{ rows: string; cost: string; ids: string }>(FIGURES, [from, until]);
  return { rows: Number(row?.rows), cost: toNano(row?.cost ?? '0'), ids: toNano(row?.ids ?? '0') };
}

const FIGURES = `
select count(*)::text as rows, coalesce(sum(cost), 0)::text as cost,
  coalesce(sum(('x' || right(id::text, 8))::bit(32)::bigint), 0)::text as ids
from gateway_operator.ledger_row where id >= $1::uuid and id < $2::uuid`;

/** The lowest id after this one. */
export function idAfter(id: string): string {
  const hex = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

// Claims of aliases with their key values and policies: read, and retired (DESIGN 5: the first claim wins).
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Claim, ObservedHolder, Registry } from '#core/ports/registry.ts';
import { ClaimRowSchema, checkRows } from './row.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session, type Statement } from './session.ts';
import { createSharing } from './shared-policies.ts';

export function createClaims(
  session: Session,
): Pick<Registry, 'claims' | 'claimsOf' | 'namespaceClaims' | 'endValues' | 'removeValue' | 'retire'> {
  /** Bytes of the claims in memory: of the last full read, and of claims that were read again later. */
  const readBytes = { bytes: 0 };
  const keep = (bytes: number): void => {
    readBytes.bytes += bytes;
    session.workMemory?.take(readBytes, readBytes.bytes);
  };
  /** Reads all rows of `text`, in pages of bounded size. */
  const readPages = async (text: string, values: ReadonlyArray<unknown>): Promise<Claim[]> => {
    const statement: Statement = { text, readJson: createSharing(), onBytes: keep };
    const claims: Claim[] = [];
    let [kind, alias, limit] = ['', '', FIRST_PAGE];
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const rows = await session.query<ClaimRow>(LIMIT, statement, [...values, kind, alias, limit]);
      for (const row of checkRows(ClaimRowSchema, rows)) claims.push(toClaim(row));
      const last = rows.at(-1);
      if (last === undefined || (rows.length < limit && last.bytes < PAGE_BYTES)) return claims;
      [kind, alias] = [last.kind, last.alias];
      // The next page may read twice as many rows. The rows beyond its maximum size are cut off, which costs only the
      // server.
      limit = Math.min(MAX_PAGE, 2 * rows.length);
    }
    throw new DatabaseUnreachable(`the database has more than ${MAX_PAGES} pages of claims of one instance`);
  };
  return {
    claims: async (instanceUid) => {
      // The claims of the previous read are replaced.
      readBytes.bytes = 0;
      const claims = await readPages(pageOf('', ['$2', '$3', '$4'], SHORT_DIGEST), [instanceUid]);
      return claims.sort((one, other) => one.anchor - other.anchor || (one.scopeId < other.scopeId ? -1 : 1));
    },
    namespaceClaims: (instanceUid) =>
      readPages(pageOf(`join (select) as of_kind on c.kind = 'namespace'`, ['$2', '$3', '$4']), [instanceUid]),
    claimsOf: (instanceUid, aliases) => {
      const columns = [aliases.map(({ kind }) => kind), aliases.map(({ alias }) => alias)];
      const join = 'join unnest($2::text[], $3::text[]) as w (kind, alias) using (kind, alias)';
      return readPages(pageOf(join, ['$4', '$5', '$6']), [instanceUid, ...columns]);
    },
    endValues: async (scopeId, hashes, overlap, observed) => {
      const endInOverlap = "not_after = coalesce(not_after, clock_timestamp() + $3::bigint * interval '1 millisecond')";
      const text = `update gateway_operator.key_value set ${overlap === undefined ? 'retired_at = now()' : endInOverlap}
        where scope_id = $1 and hash = any($2) and retired_at is null`;
      const values = [scopeId, hashes, ...(overlap === undefined ? [] : [overlap])];
      if (observed !== undefined)
        return session.transaction(LIMIT, async (query) => {
          const { isSame } = await lockClaims(query, [scopeId], observed);
          if (isSame) await query(text, values);
          return isSame;
        });
      await session.query(LIMIT, text, values);
      return true;
    },
    removeValue: async (scopeId, hash) => {
      await session.query(LIMIT, 'delete from gateway_operator.key_value where scope_id = $1 and hash = $2', [
        scopeId,
        hash,
      ]);
    },
    retire: (scopeIds, observed) => session.transaction(LIMIT, (query) => retire(query, scopeIds, observed)),
  };
}

/**
 * Locks the live claims of these scopes, in the order in which all writers lock them. Returns those that still have the
 * observed holder, and whether all of them have it.
 */
async function lockClaims(query: Query, scopeIds: ReadonlyArray<ScopeId>, observed?: ObservedHolder) {
  const live = await query<{ readonly scopeId: ScopeId; readonly isSame: boolean }>(
    `select scope_id as "scopeId", $2::text is null or
      (holder_uid = $2 and digest ->> 'retained' is not distinct from $3) as "isSame"
    from gateway_operator.claim where scope_id = any($1) and retired_at is null order by scope_id for update`,
    [scopeIds, observed?.uid ?? null, observed?.retained ?? null],
  );
  const same = live.filter(({ isSame }) => isSame);
  return { locked: same.map(({ scopeId }) => scopeId), isSame: same.length === live.length };
}

/** Retires claims first, then their values. */
export async function retire(
  query: Query,
  scopeIds: ReadonlyArray<ScopeId>,
  observed?: ObservedHolder,
): Promise<boolean> {
  const { locked, isSame } = await lockClaims(query, scopeIds, observed);
  for (const table of ['claim', 'key_value']) {
    await query(
      `update gateway_operator.${table} set retired_at = now() where scope_id = any($1) and retired_at is null`,
      [locked],
    );
  }
  return isSame;
}

/** Milliseconds of a `timestamptz`, as a number: a `bigint` would come as text. */
export const millis = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint::float8`;

interface ClaimRow extends Omit<Claim, 'holder' | 'policy' | 'previousHolders' | 'isOwnerGone'> {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly policy: NonNullable<Claim['policy']> | null;
  readonly previousHolders: ReadonlyArray<string> | null;
  readonly isOwnerGone: boolean;
  /** Bytes of the page until the end of this row. */
  readonly bytes: number;
}

/**
 * The maximum rows of the first page and of any page, and the bytes after which a page ends. Users decide how large the
 * digest of their policy is, so a page and one more row must fit into the reply of a statement (reply-meter.ts).
 */
const [FIRST_PAGE, MAX_PAGE, PAGE_BYTES] = [1000, 10_000, 6 * 1024 * 1024];
const MAX_PAGES = 500;

/**
 * Retained keys have no object that a quota counts, so what a tenant has written into them must not fill the memory of
 * an instance. Only an adoption needs the rest of their digests.
 */
const SHORT_DIGEST = `case when c.digest ? 'retained' then jsonb_build_object('retained', c.digest -> 'retained',
  'blocked', c.digest -> 'blocked') else c.digest end`;

/**
 * A page of claims of the instance $1; `join` restricts them. Values come as JSON, so that times are numbers and absent
 * members are absent.
 */
const pageOf = (join: string, [kind, alias, limit]: readonly [string, string, string], digest = 'c.digest'): string => `
with page as (
  select c.scope_id, c.kind, c.alias, c.holder_uid, c.holder_namespace, c.holder_name, c.previous_holders, ${digest} as digest, c.created_at,
    coalesce((select json_agg(json_strip_nulls(json_build_object('hash', v.hash, 'createdAt', ${millis('v.created_at')},
        'notAfter', ${millis('v.not_after')}, 'rotation', case when v.not_after is null then v.rotation end))
          order by v.created_at, v.hash)
      from gateway_operator.key_value v where v.scope_id = c.scope_id and v.retired_at is null), '[]') as values,
    case when c.digest ? 'retained' then exists (select 1 from gateway_operator.claim s
      where s.scope_id = any(c.charged_scope_ids) and s.retired_at is not null) else false end as is_owner_gone
  from gateway_operator.claim c ${join}
  where c.instance_uid = $1 and c.retired_at is null and (c.kind, c.alias) > (${kind}, ${alias})
  order by c.kind, c.alias limit ${limit}),
sized as (
  select *, coalesce(octet_length(digest::text), 0) + octet_length(values::text) as size from page),
summed as (
  select *, sum(size) over (order by kind, alias) as bytes from sized)
select scope_id as "scopeId", kind, alias, holder_uid as uid, holder_namespace as namespace, holder_name as name, digest as policy,
  case when previous_holders <> '{}' then to_json(previous_holders) end as "previousHolders", ${millis('created_at')} as anchor, values, is_owner_gone as "isOwnerGone", bytes::float8 as bytes
from summed where bytes - size < ${PAGE_BYTES} order by kind, alias`;

function toClaim({ uid, namespace, name, policy, previousHolders, isOwnerGone, bytes: _, ...claim }: ClaimRow): Claim {
  return {
    ...claim,
    holder: { uid, namespace, name },
    ...(policy === null ? {} : { policy }),
    ...(previousHolders === null ? {} : { previousHolders }),
    ...(isOwnerGone && { isOwnerGone }),
  };
}

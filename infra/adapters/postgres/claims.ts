// Claims of aliases with their key values and policies: read, and retired (DESIGN 5: the first claim wins).
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Claim, Registry } from '#core/ports/registry.ts';
import { ClaimRow as ClaimSchema, checkRows } from './row.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';
import { createSharing } from './shared-policies.ts';

export function createClaims(session: Session): Pick<Registry, 'claims' | 'claimsOf' | 'retireValues' | 'retire'> {
  /** Bytes of the claims that are kept: those that were read last, and what was read again of them. */
  const held = { bytes: 0 };
  const keep = (bytes: number): void => {
    held.bytes += bytes;
    session.share?.take(held, held.bytes);
  };
  return {
    claims: async (instanceUid) => {
      // The claims that were read before are replaced.
      held.bytes = 0;
      const statement = { text: PAGE, readJson: createSharing(), kept: keep };
      const claims: Claim[] = [];
      let [kind, alias] = ['', ''];
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const rows = await session.query<ClaimRow>(LIMIT, statement, [instanceUid, kind, alias]);
        for (const row of checkRows(ClaimSchema, rows)) claims.push(toClaim(row));
        const last = rows.at(-1);
        if (last === undefined || rows.length < PAGE_SIZE)
          return claims.sort((one, other) => one.anchor - other.anchor || (one.scopeId < other.scopeId ? -1 : 1));
        [kind, alias] = [last.kind, last.alias];
      }
      throw new DatabaseUnreachable(`its database has more than ${MAX_PAGES * PAGE_SIZE} claims of one instance`);
    },
    claimsOf: async (instanceUid, aliases) => {
      const text = `${SELECT} join unnest($2::text[], $3::text[]) as w (kind, alias) using (kind, alias)
        where c.instance_uid = $1 and c.retired_at is null`;
      const columns = [aliases.map(({ kind }) => kind), aliases.map(({ alias }) => alias)];
      const rows = await session.query<ClaimRow>(LIMIT, { text, kept: keep }, [instanceUid, ...columns]);
      return checkRows(ClaimSchema, rows).map(toClaim);
    },
    retireValues: async (scopeId, hashes, overlap) => {
      const later = "not_after = coalesce(not_after, clock_timestamp() + $3::bigint * interval '1 millisecond')";
      const text = `update gateway_operator.key_value set ${overlap === undefined ? 'retired_at = now()' : later}
        where scope_id = $1 and hash = any($2) and retired_at is null`;
      await session.query(LIMIT, text, [scopeId, hashes, ...(overlap === undefined ? [] : [overlap])]);
    },
    retire: (scopeIds) => session.transaction(LIMIT, (query) => retire(query, scopeIds)),
  };
}

/** Claims first, in the order in which all writers lock them, then their values. */
export async function retire(query: Query, scopeIds: ReadonlyArray<ScopeId>): Promise<void> {
  await query(
    'select 1 from gateway_operator.claim where scope_id = any($1) and retired_at is null order by scope_id for update',
    [scopeIds],
  );
  for (const table of ['claim', 'key_value']) {
    await query(
      `update gateway_operator.${table} set retired_at = now() where scope_id = any($1) and retired_at is null`,
      [scopeIds],
    );
  }
}

/** Milliseconds of a `timestamptz`, as a number: a `bigint` would come as text. */
export const millis = (column: string) => `(extract(epoch from ${column}) * 1000)::bigint::float8`;

interface ClaimRow extends Omit<Claim, 'holder' | 'policy'> {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly policy: NonNullable<Claim['policy']> | null;
}

/** Values come as JSON, so that instants are numbers, and what is absent is absent. */
const SELECT = `
select c.scope_id as "scopeId", c.kind, c.alias, c.holder_uid as uid, c.holder_namespace as namespace, c.holder_name as name, c.policy,
  ${millis('c.created_at')} as anchor,
  coalesce((select json_agg(json_strip_nulls(json_build_object('hash', v.hash, 'createdAt', ${millis('v.created_at')},
      'notAfter', ${millis('v.not_after')}, 'asked', v.asked)) order by v.created_at, v.hash)
    from gateway_operator.key_value v where v.scope_id = c.scope_id and v.retired_at is null), '[]') as values
from gateway_operator.claim c`;

/**
 * Claims in one statement: their policies may take 6 KiB each before a page is more than a statement may answer
 * (reply-meter.ts).
 */
const PAGE_SIZE = 10_000;
const MAX_PAGES = 50;

const PAGE = `${SELECT} where c.instance_uid = $1 and c.retired_at is null and (c.kind, c.alias) > ($2, $3)
  order by c.kind, c.alias limit ${PAGE_SIZE}`;

function toClaim({ uid, namespace, name, policy, ...claim }: ClaimRow): Claim {
  return { ...claim, holder: { uid, namespace, name }, ...(policy === null ? {} : { policy }) };
}

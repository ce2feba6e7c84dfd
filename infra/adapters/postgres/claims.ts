// Claims of aliases and key values (DESIGN 5: the first claim wins).
import type { ClaimKind, KeyPolicy, ScopeId, ScopePolicy } from '#core/ports/policy.ts';
import {
  type Added,
  type Claim,
  type ClaimOutcome,
  type Holder,
  type Registry,
  SAME_PLACE,
  type Wish,
} from '#core/ports/registry.ts';
import { createSharing } from '#core/ports/sharing.ts';
import { retire } from './retire.ts';
import { inPortions, BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';
import { addValues, millis, retireValues, toValue, type ValueRow, valuesOf } from './values.ts';

type Claims = Pick<
  Registry,
  'claims' | 'claimsOf' | 'claim' | 'claimAll' | 'addValue' | 'addValues' | 'retireValues' | 'retire'
>;

/** Small enough for the limit, whoever waits for one of its rows. */
const PORTION = 1000;

export function createClaims(session: Session): Claims {
  return {
    claims: (instanceUid, keep = (claim) => claim) =>
      session.run(LIMIT, async (_, stream) => {
        const claims: Claim[] = [];
        const text = `${SELECT_CLAIM} where c.instance_uid = $1 and c.retired_at is null`;
        const onRow = (row: ClaimRow) => void claims.push(keep(toClaim(row)));
        await stream<ClaimRow>({ text, readJson: createSharing(), onRow }, [instanceUid]);
        return claims.sort((one, other) => one.anchor - other.anchor || (one.scopeId < other.scopeId ? -1 : 1));
      }),

    claimsOf: (instanceUid, aliases) =>
      session.run(LIMIT, async (query) => {
        const rows = await query<ClaimRow>(
          `${SELECT_CLAIM} join unnest($2::text[], $3::text[]) as w (kind, alias) using (kind, alias)
           where c.instance_uid = $1 and c.retired_at is null`,
          [instanceUid, aliases.map(({ kind }) => kind), aliases.map(({ alias }) => alias)],
        );
        return rows.map(toClaim);
      }),

    claim: (instanceUid, kind, alias, holder, proof) =>
      session.run(LIMIT, (query) => claim(query, { instanceUid, kind, alias, holder, proof })),

    claimAll: async (instanceUid, wishes) => {
      const outcomes: ClaimOutcome[] = [];
      for (const portion of inPortions(wishes, PORTION))
        outcomes.push(...(await session.run(LIMIT, (query) => claimAll(query, instanceUid, portion))));
      return outcomes;
    },

    addValue: async (scopeId, hash, asked) => {
      const value = { scopeId, hash, ...(asked === undefined ? {} : { asked }) };
      const [added] = await session.transaction(LIMIT, (query) => addValues(query, [value]));
      if (added === 'retired' || added === undefined)
        throw new Error(`adding a value to scope ${scopeId}, which is retired or was never claimed`);
      return added === 'another scope has it' ? undefined : added;
    },

    addValues: async (values) => {
      const added: Added[] = [];
      for (const portion of inPortions(values, PORTION))
        added.push(...(await session.transaction(LIMIT, (query) => addValues(query, portion))));
      return added;
    },

    retireValues: (scopeId, hashes, overlap) =>
      session.run(LIMIT, (query) => retireValues(query, scopeId, hashes, overlap)),

    retire: (scopeIds) => session.transaction(LIMIT, (query) => retire(query, scopeIds)),
  };
}

interface ClaimRow {
  readonly scope_id: ScopeId;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder_uid: string;
  readonly holder_namespace: string;
  readonly holder_name: string;
  readonly anchor: string;
  readonly policy: ScopePolicy | KeyPolicy | null;
  readonly live: ReadonlyArray<ValueRow>;
}

const SELECT_CLAIM = `
select c.scope_id, c.kind, c.alias, c.holder_uid, c.holder_namespace, c.holder_name, c.policy, ${millis('c.created_at')} as anchor,
  ${valuesOf('c.scope_id')} as live
from gateway_operator.claim c`;

function toClaim(row: ClaimRow): Claim {
  return {
    scopeId: row.scope_id,
    kind: row.kind,
    alias: row.alias,
    holder: { uid: row.holder_uid, namespace: row.holder_namespace, name: row.holder_name },
    anchor: Number(row.anchor),
    values: row.live.map(toValue),
    ...(row.policy === null ? {} : { policy: row.policy }),
  };
}

interface Asked {
  readonly instanceUid: string;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder: Holder;
  readonly proof: string | undefined;
}

/** The unique index decides the race; whoever loses reads who won. A winner that retires meanwhile leaves another round. */
async function claim(query: Query, { instanceUid, kind, alias, holder, proof }: Asked): Promise<ClaimOutcome> {
  for (;;) {
    const [row] = await query<ClaimRow>(
      `${SELECT_CLAIM} where c.instance_uid = $1 and c.kind = $2 and c.alias = $3 and c.retired_at is null`,
      [instanceUid, kind, alias],
    );
    if (row !== undefined) {
      const found = toClaim(row);
      if (found.holder.uid === holder.uid) return { won: true, claim: found };
      if (proof !== undefined && (await adopt(query, found, holder, proof))) continue;
      return { won: false, by: found.holder };
    }
    if (kind === 'key' && proof !== undefined && (await moveRetained(query, { instanceUid, alias, holder, proof })))
      continue;
    await query(
      `insert into gateway_operator.claim (instance_uid, kind, alias, holder_uid, holder_namespace, holder_name)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (instance_uid, kind, alias) where retired_at is null do nothing`,
      [instanceUid, kind, alias, holder.uid, holder.namespace, holder.name],
    );
  }
}

/**
 * The unique index decides each race. Everybody asks in the order of aliases, so that no two wait for each other. A winner that
 * retires before it is read leaves another round.
 */
async function claimAll(query: Query, instanceUid: string, wishes: ReadonlyArray<Wish>): Promise<ClaimOutcome[]> {
  const nameOf = ({ kind, alias }: Pick<Wish, 'kind' | 'alias'>) => `${kind} ${alias}`;
  const found = new Map<string, Claim>();
  for (let missing = wishes; missing.length > 0; missing = wishes.filter((wish) => !found.has(nameOf(wish)))) {
    const asked = missing.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
    const [kinds, aliases] = [asked.map(({ kind }) => kind), asked.map(({ alias }) => alias)];
    const holders = asked.map(({ holder }) => holder);
    await query(CLAIM_ALL, [
      instanceUid,
      kinds,
      aliases,
      holders.map(({ uid }) => uid),
      holders.map(({ namespace }) => namespace),
      holders.map(({ name }) => name),
    ]);
    const rows = await query<ClaimRow>(
      `${SELECT_CLAIM} join unnest($2::text[], $3::text[]) as w (kind, alias) using (kind, alias)
       where c.instance_uid = $1 and c.retired_at is null`,
      [instanceUid, kinds, aliases],
    );
    for (const claim of rows.map(toClaim)) found.set(nameOf(claim), claim);
  }
  return wishes.map((wish) => {
    const claim = found.get(nameOf(wish)) as Claim;
    return claim.holder.uid === wish.holder.uid ? { won: true, claim } : { won: false, by: claim.holder };
  });
}

const CLAIM_ALL = `
insert into gateway_operator.claim (instance_uid, kind, alias, holder_uid, holder_namespace, holder_name)
select $1, w.* from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) as w
on conflict (instance_uid, kind, alias) where retired_at is null do nothing`;

/** Of two that prove the same value the first takes the claim over: the other finds a holder that it did not expect. */
async function adopt(
  query: Query,
  { scopeId, kind, holder: from }: Claim,
  to: Holder,
  proof: string,
): Promise<boolean> {
  if (kind !== 'key') return proof === SAME_PLACE && adoptInPlace(query, scopeId, from, to);
  const adopted = await query(
    `update gateway_operator.claim c set holder_uid = $3, holder_namespace = $4, holder_name = $5, generation = null
     where c.scope_id = $1 and c.holder_uid = $2 and c.retired_at is null and exists (
       select 1 from gateway_operator.key_value v where v.scope_id = $1 and v.hash = $6 and v.retired_at is null
         and (v.not_after is null or v.not_after > clock_timestamp()))
     returning 1`,
    [scopeId, from.uid, to.uid, to.namespace, to.name, proof],
  );
  return adopted.length > 0;
}

async function adoptInPlace(query: Query, scopeId: ScopeId, from: Holder, to: Holder): Promise<boolean> {
  const adopted = await query(
    `update gateway_operator.claim set holder_uid = $3, generation = null where scope_id = $1 and holder_uid = $2 and retired_at is null
       and holder_namespace = $4 and holder_name = $5
     returning 1`,
    [scopeId, from.uid, to.uid, to.namespace, to.name],
  );
  return adopted.length > 0;
}

/** From wherever it is in this database: a key that works on without an object goes to whoever has its value. */
async function moveRetained(
  query: Query,
  { instanceUid, alias, holder, proof }: Pick<Asked, 'instanceUid' | 'alias' | 'holder'> & { readonly proof: string },
): Promise<boolean> {
  const moved = await query(
    `update gateway_operator.claim c set instance_uid = $1, alias = $2, holder_uid = $3, holder_namespace = $4, holder_name = $5,
       generation = null
     where c.kind = 'key' and c.retired_at is null and c.policy ? 'retained' and c.scope_id in (
       select v.scope_id from gateway_operator.key_value v where v.hash = $6 and v.retired_at is null
         and (v.not_after is null or v.not_after > clock_timestamp()))
     returning 1`,
    [instanceUid, alias, holder.uid, holder.namespace, holder.name, proof],
  );
  return moved.length > 0;
}

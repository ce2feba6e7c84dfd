// Instances that keep their VirtualKeys in this database: open, closed, or continuing the ledger of another instance.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import type { Adoption, InstanceRow, InstanceState, PreviousLedger, Registry } from '#core/ports/registry.ts';
import { millis, retire } from './claims.ts';
import { checkRows, InstanceRowSchema, StateRowSchema } from './row.ts';
import { SCHEMA_VERSION } from './schema.ts';
import { BACKGROUND_LIMIT as LIMIT, type Query, type Session } from './session.ts';

type Instances = Pick<Registry, 'openInstance' | 'closeInstance' | 'instance' | 'openInstances'>;

const PORTION = 5000;
/** The maximum portions in one call, of more claims than a resync has memory for. */
const MAX_PORTIONS = 200;

export function createInstances(session: Session): Instances {
  /**
   * Runs `work` in a transaction for each portion until the scopes that it returns are fewer than a portion. Throws if
   * there are more portions than the maximum, or if the same scopes come again.
   */
  const inPortions = async (work: (query: Query) => Promise<ReadonlyArray<ScopeId>>) => {
    let previousIds: ReadonlySet<ScopeId> = new Set();
    for (let portion = 0; portion < MAX_PORTIONS; portion += 1) {
      const scopeIds = new Set(await session.transaction(LIMIT, work));
      if (scopeIds.size < PORTION) return;
      if (!previousIds.isDisjointFrom(scopeIds)) throw new DatabaseUnreachable(UNCHANGED);
      previousIds = scopeIds;
    }
    throw new DatabaseUnreachable(
      `the database has more than ${MAX_PORTIONS * PORTION} claims of one instance: the next run continues`,
    );
  };
  return {
    openInstance: async (instance, ledger) => {
      const adoption = await session.transaction(LIMIT, (query) => open(query, instance, ledger));
      if (!adoption.ok) return adoption;
      // An earlier call may have ended in the middle, and is continued here. A lost predecessor still has live claims.
      const [row] = await session.query<{ uid: string | null }>(LIMIT, PREDECESSOR, [instance.uid]);
      const predecessor = row?.uid ?? undefined;
      if (predecessor === undefined) return adoption;
      await inPortions((query) => retirePortion(query, predecessor));
      await inPortions((query) => movePortion(query, instance.uid));
      await session.query(LIMIT, END_ADOPTION, [instance.uid]);
      return adoption;
    },

    closeInstance: async (uid) => {
      // From now on no VirtualKey of the instance works; its claims are retired in portions.
      const text = 'update gateway_operator.instance set closed_at = now() where uid = $1 and closed_at is null';
      await session.query(LIMIT, text, [uid]);
      await inPortions((query) => retirePortion(query, uid));
    },

    instance: (uid) => stateOf(session, uid),

    openInstances: async (cluster) => {
      const text = `select uid, namespace, name, cluster from gateway_operator.instance i
        where cluster = $1 and (closed_at is null or exists (
          select 1 from gateway_operator.claim c where c.instance_uid = i.uid and c.retired_at is null)) order by uid`;
      const rows = await session.query<InstanceRow & { readonly cluster: string }>(LIMIT, text, [cluster]);
      return checkRows(InstanceRowSchema, rows);
    },
  };
}

async function stateOf(session: Session, uid: string): Promise<InstanceState> {
  const [row] = await session.query<StateRow>(
    LIMIT,
    `select ${millis('clock_timestamp()')} as now,
       case when i.adopted_at is not null then json_build_object('uid', i.adopted_from, 'since', ${millis('i.adopted_at')}) end as predecessor,
       case when i.uid is not null then json_build_object('namespace', i.namespace, 'name', i.name) end as place,
       exists (select 1 from gateway_operator.claim c where c.instance_uid = $1 and c.retired_at is null) as "hasClaims",
       i.uid is not null and i.closed_at is null and (i.adopted_from is null or i.adopted_at is not null)
         and (select max(version) from gateway_operator.migration) = ${SCHEMA_VERSION} as "isOpen"
     from (select 1) as one left join gateway_operator.instance i on i.uid = $1`,
    [uid],
  );
  if (row === undefined) throw new Error('PostgreSQL returned no state of the instance');
  checkRows(StateRowSchema, [row]);
  const { predecessor, place, ...state } = row;
  return { ...state, ...(predecessor !== null && { predecessor }), ...(place !== null && { place }) };
}

interface StateRow extends Omit<InstanceState, 'predecessor' | 'place'> {
  readonly predecessor: NonNullable<InstanceState['predecessor']> | null;
  readonly place: NonNullable<InstanceState['place']> | null;
}

interface OpenRow {
  readonly uid: string;
  readonly closed_at: string | null;
  readonly adopted_from: string | null;
  readonly adopted_by: string | null;
}

/** Both rows are locked in one order, so that only one of two instances that name the same ledger gets it. */
async function open(
  query: Query,
  { uid, namespace, name, cluster }: InstanceRow,
  ledger: PreviousLedger | undefined,
): Promise<Adoption> {
  const rows = await query<OpenRow>(
    `select uid, closed_at, adopted_from, adopted_by from gateway_operator.instance where uid = any($1) order by uid for update`,
    [[uid, ...(ledger === undefined ? [] : [ledger.uid])]],
  );
  const adopts = ledger !== undefined && !(await hasLedger(query, uid, rows));
  const adoption = adopts ? adoptionOf(uid, ledger, rows) : { ok: true as const };
  if (!adoption.ok) return adoption;
  await query(
    `insert into gateway_operator.instance as old (uid, namespace, name, cluster) values ($1, $2, $3, $4)
     on conflict (uid) do update set namespace = $2, name = $3, cluster = coalesce($4, old.cluster), closed_at = null
     where old.closed_at is not null or (old.namespace, old.name) <> ($2, $3) or (old.cluster is null and $4 is not null)`,
    [uid, namespace, name, cluster ?? null],
  );
  if (adopts) await query(ADOPT_LEDGER, [uid, ledger.uid]);
  return adoption;
}

const ADOPT_LEDGER = `
with old as (
  update gateway_operator.instance set adopted_by = $1, closed_at = coalesce(closed_at, now()) where uid = $2)
update gateway_operator.instance set adopted_from = $2 where uid = $1`;

const PREDECESSOR = 'select adopted_from as uid from gateway_operator.instance where uid = $1';

/** Until all claims have moved, the instance is not open: else their objects would make new claims, with full budgets. */
const END_ADOPTION = `
update gateway_operator.instance set adopted_at = date_trunc('milliseconds', clock_timestamp())
where uid = $1 and adopted_at is null`;

/** Whether the instance has claims, or has adopted a ledger before: then it continues with its own ledger. */
async function hasLedger(query: Query, uid: string, rows: ReadonlyArray<OpenRow>): Promise<boolean> {
  if (rows.some((row) => row.uid === uid && row.adopted_from !== null)) return true;
  const text = 'select 1 from gateway_operator.claim where instance_uid = $1 and retired_at is null limit 1';
  return (await query(text, [uid])).length > 0;
}

function adoptionOf(uid: string, ledger: PreviousLedger, rows: ReadonlyArray<OpenRow>): Adoption {
  if (uid === ledger.uid) return { ok: false, why: 'same' };
  const old = rows.find((row) => row.uid === ledger.uid);
  if (old === undefined) return { ok: false, why: 'absent' };
  if (old.adopted_by !== null) return { ok: false, why: 'adopted', successor: old.adopted_by };
  return old.closed_at === null && !ledger.isMissing ? { ok: false, why: 'open' } : { ok: true };
}

/**
 * Moves claims that were live until the old instance was closed to the new instance, and makes them live again. Of
 * these claims only retained VirtualKeys work immediately; all others are blocked until the policy of their object is
 * written. Namespaces keep their policies. Returns the moved scopes.
 */
async function movePortion(query: Query, uid: string): Promise<ReadonlyArray<ScopeId>> {
  const rows = await query<{ scope_id: ScopeId }>(MOVE_CLAIMS, [uid]);
  return rows.map(({ scope_id }) => scope_id);
}

const MOVE_CLAIMS = `
with old as (
  select o.uid, o.closed_at from gateway_operator.instance i
    join gateway_operator.instance o on o.uid = i.adopted_from and o.adopted_by = i.uid
  where i.uid = $1),
last as (
  select distinct on (c.kind, c.alias) c.scope_id from gateway_operator.claim c join old on c.instance_uid = old.uid
  where c.retired_at >= old.closed_at and not exists (select 1 from gateway_operator.claim mine
    where mine.instance_uid = $1 and mine.kind = c.kind and mine.alias = c.alias and mine.retired_at is null)
  order by c.kind, c.alias, c.retired_at desc, c.scope_id limit ${PORTION}),
moved as (
  update gateway_operator.claim c set instance_uid = $1, retired_at = null, generation = null,
    policy = case when c.policy ? 'retained' or c.kind = 'namespace' then c.policy else c.policy || '{"blocked": true}' end,
    digest = case when c.policy ? 'retained' or c.kind = 'namespace' then c.digest else c.digest || '{"blocked": true}' end
  from last where c.scope_id = last.scope_id returning c.scope_id),
revived as (
  update gateway_operator.key_value v set retired_at = null from moved, old
  where v.scope_id = moved.scope_id and v.retired_at >= old.closed_at and not exists (
    select 1 from gateway_operator.key_value other where other.hash = v.hash and other.retired_at is null))
select scope_id from moved`;

/** Retires a portion of the claims; returns their scopes. */
async function retirePortion(query: Query, instanceUid: string): Promise<ReadonlyArray<ScopeId>> {
  const rows = await query<{ scope_id: ScopeId }>(
    `select scope_id from gateway_operator.claim where instance_uid = $1 and retired_at is null limit ${PORTION}`,
    [instanceUid],
  );
  const scopeIds = rows.map(({ scope_id }) => scope_id);
  if (scopeIds.length > 0) await retire(query, scopeIds);
  return scopeIds;
}

const UNCHANGED =
  'the database accepts changes of claims but does not apply them: drop the trigger or rule that prevents them';

// The schema of the database: its tables, and how one of many processes makes them.
import { DatabaseUnreachable } from '#core/ports/backends.ts';
import { BACKGROUND_LIMIT, type Query, type Session } from './session.ts';

/**
 * One more for each change of `TABLES`. Until the first release no database is brought forward: another version is
 * refused.
 */
export const SCHEMA_VERSION = 11;

/** A number of our own: the lock of all processes that make the schema. */
const LOCK = 7_203_418_865;

/**
 * Makes the schema where there is none, in one transaction. Throws where another version is there: its statements would
 * not fit. Answers the version before and after.
 */
export async function ensureSchema(session: Session): Promise<{ readonly from: number; readonly to: number }> {
  const found = await session.run(BACKGROUND_LIMIT, readVersion);
  const from = found ?? (await session.transaction(BACKGROUND_LIMIT, create));
  if (from !== 0) requireVersion(from);
  return { from, to: SCHEMA_VERSION };
}

/**
 * Throws where another version of this operator made the schema: its statements would not fit, and what they charge
 * would be a guess.
 */
export function requireVersion(version: number | null): void {
  if (version === SCHEMA_VERSION) return;
  const there = `the database has version ${version} of the schema gateway_operator, this operator needs ${SCHEMA_VERSION}`;
  const made = Number(version) > SCHEMA_VERSION ? 'a later' : 'an earlier';
  throw new DatabaseUnreachable(`${there}: ${made} version made it; run that version here, or name an empty database`);
}

/** Answers the version that is there once the lock is ours; 0: none was. */
async function create(query: Query): Promise<number> {
  await query(`set local lock_timeout = ${BACKGROUND_LIMIT - 500}`);
  await query(`select pg_advisory_xact_lock(${LOCK})`);
  const version = await readVersion(query);
  if (version !== undefined) return version;
  // `create schema if not exists` asks for the right to create one even where it is there.
  const [schema] = await query(`select 1 from pg_catalog.pg_namespace where nspname = 'gateway_operator'`);
  if (schema === undefined) await query('create schema gateway_operator');
  await query(TABLES);
  await query('insert into gateway_operator.migration (version) values ($1)', [SCHEMA_VERSION]);
  return 0;
}

async function readVersion(query: Query): Promise<number | undefined> {
  if (!(await hasTable(query, 'migration'))) return undefined;
  const [row] = await query<{ version: number }>('select max(version) as version from gateway_operator.migration');
  return row?.version;
}

/**
 * Reads the catalog like any table. `to_regclass` would answer from a cache that a session refreshes when a transaction
 * begins: one that waits for an advisory lock inside it would not see what the lock's last holder made.
 */
export async function hasTable(query: Query, name: string): Promise<boolean> {
  const [found] = await query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'gateway_operator' and c.relname = $1`,
    [name],
  );
  return found !== undefined;
}

/** Windows are milliseconds since the epoch, exact in every language. */
const TABLES = `
create table gateway_operator.migration (
  version integer primary key,
  applied_at timestamptz(3) not null default now()
);

create table gateway_operator.instance (
  uid text primary key,
  namespace text not null,
  name text not null,
  opened_at timestamptz(3) not null default now(),
  closed_at timestamptz(3),
  cluster text,
  -- The instance whose ledger this one continued with, and the one that continued with its own.
  adopted_from text,
  adopted_at timestamptz(3),
  adopted_by text
);

-- A scope. Rows stay for ever: entries and sums point to them.
create table gateway_operator.claim (
  scope_id uuid primary key default gen_random_uuid(),
  instance_uid text not null,
  kind text not null check (kind in ('key', 'user', 'team')),
  alias text not null,
  holder_uid text not null,
  holder_namespace text not null,
  holder_name text not null,
  -- Whole seconds, as people read the dates that are counted from it.
  created_at timestamptz(3) not null default date_trunc('second', clock_timestamp()),
  retired_at timestamptz(3),
  policy jsonb,
  -- The policy's own list, typed, for the look-up by hash.
  charges uuid[] not null default '{}',
  -- Of the object that the policy was made of.
  generation bigint,
  -- The key of the MACs that bind stored responses to this VirtualKey (decision 34). It leaves the database for gateways only.
  secret uuid not null default gen_random_uuid()
);
create unique index claim_alias on gateway_operator.claim (instance_uid, kind, alias) where retired_at is null;

create table gateway_operator.key_value (
  scope_id uuid not null references gateway_operator.claim,
  hash text collate "C" not null,
  created_at timestamptz(3) not null default date_trunc('milliseconds', clock_timestamp()),
  not_after timestamptz(3),
  retired_at timestamptz(3),
  asked text,
  primary key (scope_id, hash)
);
create unique index key_value_hash on gateway_operator.key_value (hash) where retired_at is null;

-- Append-only. The id is a UUIDv7: its time picks the month, and (id, kind) is unique over all months.
create table gateway_operator.entry (
  id uuid not null,
  kind text not null check (kind in ('settled', 'expired', 'correction')),
  instance_uid text not null,
  -- A closed account's charge is negative where corrections outweigh the rest (expired-entries.ts).
  cost bigint not null check (cost >= 0 or kind <> 'settled'),
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  model text not null,
  identifier text not null,
  estimated boolean not null,
  settled_at timestamptz(3) not null,
  -- Who pays, out of which windows: as many of each.
  scope_ids uuid[] not null,
  window_starts bigint[] not null,
  window_ends bigint[] not null,
  primary key (id, kind)
) partition by range (id);

-- What a scope paid in a second: one row per scope, second and batch. Its id is the lowest of that second, for windows begin with whole seconds.
create table gateway_operator.charge (
  scope_id uuid not null,
  id uuid not null,
  cost numeric not null
) partition by range (id);
create index charge_scope on gateway_operator.charge (scope_id, id) include (cost);

create table gateway_operator.sum (
  scope_id uuid not null,
  window_start bigint not null,
  window_end bigint not null,
  amount numeric not null,
  primary key (scope_id, window_start, window_end)
) with (fillfactor = 70);

-- The same charges by the hour of the entry's id (hours since the epoch): they make a recount cheap.
create table gateway_operator.hour_sum (
  scope_id uuid not null,
  hour bigint not null,
  amount numeric not null,
  primary key (scope_id, hour)
) with (fillfactor = 70);

-- The window a scope was last recounted into: entries of that time which name another window count there as well.
create table gateway_operator.recount (
  scope_id uuid primary key,
  window_start bigint not null,
  window_end bigint not null,
  from_id uuid not null,
  until_id uuid not null
);

-- Entries that PostgreSQL refused, as they came; a person decides.
create table gateway_operator.entry_rejected (
  id text not null,
  kind text not null,
  instance_uid text not null,
  entry json not null,
  reason text not null,
  -- Of the entry: it counts as spent until then.
  cost numeric not null,
  charges json not null,
  rejected_at timestamptz(3) not null default now(),
  primary key (id, kind)
);

-- Like 2026_01. Whether an entry of that time was booked is not known any more.
create table gateway_operator.dropped_month (
  month text primary key,
  dropped_at timestamptz(3) not null default now()
);

create table gateway_operator.store_epoch (
  instance_uid text primary key,
  epoch bigint not null,
  raised_at timestamptz(3) not null default clock_timestamp(),
  -- Null while live processes still join it.
  opened_at timestamptz(3),
  -- The store's count of all calls in this epoch, as batches told it.
  calls bigint not null default 0
);

-- An account of the store. Rows of closed accounts stay as long as the entries of their time (months.ts): a journal may come back after
-- days, and a store after a weekend. On Workers an account is one request with the id of its entry: the entry closes it, and it has no row.
create table gateway_operator.account (
  instance_uid text not null,
  account uuid not null,
  -- The last batch, and the number of the last answered call when that was booked.
  booked bigint not null,
  number bigint not null,
  closed_at timestamptz(3),
  -- The ids of its expired entries. Null: nobody has charged it.
  charged uuid[],
  primary key (instance_uid, account)
) with (fillfactor = 70);

create table gateway_operator.gateway_process (
  instance_uid text not null,
  process text not null,
  -- The epoch under which the store has what this process holds.
  epoch bigint not null,
  seen_at timestamptz(3) not null,
  left_at timestamptz(3),
  primary key (instance_uid, process)
);
`;

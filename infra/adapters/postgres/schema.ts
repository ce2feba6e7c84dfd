// The schema of the database: its tables, and how one of many processes makes them.
import { SchemaMismatch } from '#core/ports/backends.ts';
import { BACKGROUND_LIMIT, type Query, type Session } from './session.ts';

/**
 * The version of `TABLES`. Until the first release no database is migrated: another version is refused. After it, each
 * change of `TABLES` raises the version.
 */
export const SCHEMA_VERSION = 10;

/** The advisory lock of all processes that make the schema: an arbitrary number. */
const LOCK = 7_203_418_865;

/**
 * Creates the schema if there is none, in one transaction. Throws if the database has another version. Returns the
 * version before (0: none) and after.
 */
export async function ensureSchema(session: Session): Promise<{ readonly from: number; readonly to: number }> {
  const found = await session.run(BACKGROUND_LIMIT, readVersion);
  const before = found ?? (await session.transaction(BACKGROUND_LIMIT, create));
  if (before !== undefined) requireVersion(before);
  return { from: before ?? 0, to: SCHEMA_VERSION };
}

/** Throws if another version of the operator made the schema: the statements of this version would not fit. */
export function requireVersion(version: number | null): void {
  if (version === SCHEMA_VERSION) return;
  const versions = `the database has version ${version} of the schema gateway_operator, this operator needs ${SCHEMA_VERSION}`;
  const made = Number(version) > SCHEMA_VERSION ? 'a later' : 'an earlier';
  throw new SchemaMismatch(`${versions}: ${made} version made it; run that version here, or name an empty database`);
}

/** Returns the version that the database has once the lock is taken. Undefined: none, and the schema was created. */
async function create(query: Query): Promise<number | undefined> {
  await query(`set local lock_timeout = ${BACKGROUND_LIMIT - 500}`);
  await query(`select pg_advisory_xact_lock(${LOCK})`);
  const version = await readVersion(query);
  if (version !== undefined) return version;
  // `create schema if not exists` needs the right to create schemas even if the schema exists.
  const [schema] = await query(`select 1 from pg_catalog.pg_namespace where nspname = 'gateway_operator'`);
  if (schema === undefined) await query('create schema gateway_operator');
  await query(TABLES);
  await query('insert into gateway_operator.migration (version) values ($1)', [SCHEMA_VERSION]);
  return undefined;
}

async function readVersion(query: Query): Promise<number | undefined> {
  if (!(await hasTable(query, 'migration'))) return undefined;
  const [row] = await query<{ version: number }>('select max(version) as version from gateway_operator.migration');
  return row?.version;
}

/**
 * Whether the schema has this table, read from the catalog. `to_regclass` reads a cache that a session refreshes when a
 * transaction begins: a transaction that has waited for the advisory lock would not see the tables of the process that
 * had the lock.
 */
export async function hasTable(query: Query, name: string): Promise<boolean> {
  const [found] = await query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'gateway_operator' and c.relname = $1`,
    [name],
  );
  return found !== undefined;
}

/**
 * Windows are milliseconds since the Unix epoch, money is nano-dollars (`bigint` in a row, `numeric` in a sum). LEDGER
 * 2 to 8 define the terms.
 */
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
  -- The uid of the instance whose ledger this instance has taken over, and of the instance that has taken over this one's.
  -- adopted_at is null while claims are still moved.
  adopted_from text,
  adopted_at timestamptz(3),
  adopted_by text
);

-- Scopes with their policies. Rows stay while ledger rows, usage or VirtualKeys refer to them (retired-claims.ts).
create table gateway_operator.claim (
  scope_id uuid primary key default gen_random_uuid(),
  instance_uid text not null,
  kind text not null check (kind in ('key', 'user', 'team', 'namespace')),
  -- The alias; the name of a namespace.
  alias text not null,
  -- The custom resource that has the alias. No object has that of a namespace (namespaceHolder).
  holder_uid text not null,
  holder_namespace text not null,
  holder_name text not null,
  -- The uids of the custom resources that had the alias before it, by adoption: the last one first, at most eight.
  previous_holders text[] not null default '{}',
  -- Whole seconds: windows are counted from this time, and people read their dates.
  created_at timestamptz(3) not null default date_trunc('second', clock_timestamp()),
  retired_at timestamptz(3),
  policy jsonb,
  -- Bytes of the policy as text: a look-up chooses policies by size, and does not read those that it leaves out.
  policy_size integer generated always as (octet_length(policy::text)) stored,
  -- The policy with hashes in place of long members: all that the reconciler reads of it (policy-digest.ts).
  digest jsonb,
  -- For the look-up by hash.
  charged_scope_ids uuid[] not null default '{}',
  -- metadata.generation of the custom resource from which the policy was made.
  generation bigint,
  -- The key of the MACs that bind stored responses to this VirtualKey (decision 0034). Only gateways read it.
  secret uuid not null default gen_random_uuid()
);
create unique index claim_alias on gateway_operator.claim (instance_uid, kind, alias) where retired_at is null;

-- Hashes of key values. A VirtualKey has several while it rotates.
create table gateway_operator.key_value (
  scope_id uuid not null references gateway_operator.claim,
  hash text collate "C" not null,
  created_at timestamptz(3) not null default date_trunc('milliseconds', clock_timestamp()),
  not_after timestamptz(3),
  retired_at timestamptz(3),
  -- The text of the rotation annotation for which this key value was made.
  rotation text,
  primary key (scope_id, hash)
);
create unique index key_value_hash on gateway_operator.key_value (hash) where retired_at is null;

-- What many ledger rows of a day share: one row for each different content. The id is made from the day and the content
-- (ledger-sets.ts): its time is in the day, which decides the partition.
create table gateway_operator.ledger_set (
  id uuid primary key,
  instance_uid text not null,
  model text not null,
  identifier text not null,
  estimated boolean not null,
  -- The charged scopes, and the window of each: the n-th elements belong together.
  scope_ids uuid[] not null,
  window_starts bigint[] not null,
  window_ends bigint[] not null
) partition by range (id);
create index ledger_set_scopes on gateway_operator.ledger_set using gin (scope_ids);

-- Ledger rows: append-only. The id is a UUIDv7: its time decides the partition, and (id, kind) is unique in all of them.
create table gateway_operator.ledger_row (
  id uuid not null,
  -- A row of ledger_set, of the same day.
  set_id uuid not null,
  -- The charge of a closed account is negative if its corrections are larger than the rest (expired-rows.ts).
  cost bigint not null check (cost >= 0 or kind <> 'settled'),
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  settled_at timestamptz(3) not null,
  kind text not null check (kind in ('settled', 'expired', 'correction')),
  primary key (id, kind)
) partition by range (id);
create index ledger_row_set on gateway_operator.ledger_row (set_id);

-- The sum of each counter: a scope in a window.
create table gateway_operator.sum (
  scope_id uuid not null,
  window_start bigint not null,
  window_end bigint not null,
  amount numeric not null,
  primary key (scope_id, window_start, window_end)
) with (fillfactor = 70);

-- Sums by the hour of the ledger row's id (hours since the Unix epoch), which make a recount cheap.
create table gateway_operator.hour_sum (
  scope_id uuid not null,
  hour bigint not null,
  amount numeric not null,
  primary key (scope_id, hour)
) with (fillfactor = 70);

-- The sum of the hours of each scope before kept_from, which are no longer in hour_sum: for windows that begin earlier.
create table gateway_operator.opening_balance (
  scope_id uuid primary key,
  amount numeric not null
);

-- Usage of each scope by model and UTC day of the ledger row's id, for reports. A row of the kind settled is a request;
-- cost and tokens are those of all kinds, so that the costs of a scope are its hours. The instance is the one that
-- booked first on the day.
create table gateway_operator.usage_day (
  scope_id uuid not null,
  day date not null,
  model text collate "C" not null,
  instance_uid text not null,
  requests bigint not null,
  input_tokens numeric not null,
  output_tokens numeric not null,
  cached_input_tokens numeric not null,
  cache_write_tokens numeric not null,
  cost numeric not null,
  primary key (day, scope_id, model)
) with (fillfactor = 70);

-- What batches have added to the usage since the last resync, a row for each batch: one row is cheaper than a change of
-- as many rows of usage_day as the batch has scopes. The n-th elements of the arrays belong together; days since the
-- Unix epoch, and indexes in models.
create table gateway_operator.usage_added (
  id bigint generated always as identity primary key,
  instance_uid text not null,
  scope_ids uuid[] not null,
  models text[] not null,
  model_indexes smallint[] not null,
  days int[] not null,
  requests int[] not null,
  input_tokens numeric[] not null,
  output_tokens numeric[] not null,
  cached_input_tokens numeric[] not null,
  cache_write_tokens numeric[] not null,
  costs numeric[] not null
);

-- All usage: what reports read. A day may have several rows.
create view gateway_operator.usage as
select scope_id, day, model, instance_uid, requests, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cost
from gateway_operator.usage_day
union all
select scope_id, date '1970-01-01' + u.day, models[model], instance_uid, u.requests, u.input_tokens, u.output_tokens,
  u.cached_input_tokens, u.cache_write_tokens, cost
from gateway_operator.usage_added a, unnest(a.scope_ids, a.model_indexes, a.days, a.requests, a.input_tokens, a.output_tokens,
    a.cached_input_tokens, a.cache_write_tokens, a.costs)
  as u (scope_id, model, day, requests, input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, cost);

-- The window into which a scope was last recounted: ledger rows of that time that name another window also count here.
create table gateway_operator.recount (
  scope_id uuid primary key,
  window_start bigint not null,
  window_end bigint not null,
  from_id uuid not null,
  until_id uuid not null
);

-- Ledger rows that PostgreSQL refused, unchanged. They count as spent until a person decides.
create table gateway_operator.entry_rejected (
  id text not null,
  kind text not null,
  instance_uid text not null,
  ledger_row json not null,
  reason text not null,
  cost numeric not null,
  scope_windows json not null,
  -- The scopes of these windows, for the look-up of a counter.
  scope_ids text[] not null,
  rejected_at timestamptz(3) not null default now(),
  primary key (id, kind)
);
create index entry_rejected_scopes on gateway_operator.entry_rejected using gin (scope_ids);

-- Days before kept_from were dropped: whether a ledger row of that time was booked is no longer known. At most one row.
create table gateway_operator.retention (
  is_only boolean primary key default true check (is_only),
  kept_from date not null,
  -- The day for which old sums were deleted last (old-sums.ts): kept_from, or a later day if all ledger rows are kept.
  cleaned_from date
);

-- Archives of ledger rows (ARCHIVE_URL), by their URL. One reconciler at a time has the lease, and writes.
create table gateway_operator.archive (
  url text primary key,
  -- The folder of this database in the archive.
  folder uuid not null default gen_random_uuid(),
  lease uuid not null,
  leased_until timestamptz(3) not null
);

-- Files of an archive, each with the ledger rows of a range of ids. The files of a day follow each other without a gap.
create table gateway_operator.archived_file (
  url text not null,
  day date not null,
  from_id uuid not null,
  until_id uuid not null,
  -- Whether the archive has a file with the rows of the range, or with more.
  is_written boolean not null default false,
  -- PostgreSQL's count of inserts into the day before the file was last written or compared. Another count: rows may have
  -- come since. Null: the file must be written.
  inserts bigint,
  -- What the rows of the file add up to. Null: the file must be written.
  row_count bigint,
  cost numeric,
  id_sum numeric,
  -- Whether the file was read back and has all of these rows. It is read when its day is to be dropped.
  is_read_back boolean not null default false,
  primary key (url, from_id)
);
create index archived_file_day on gateway_operator.archived_file (url, day);

-- The epoch of the counter store of an instance.
create table gateway_operator.store_epoch (
  instance_uid text primary key,
  epoch bigint not null,
  -- The address of the counter store that has this epoch.
  store text not null,
  raised_at timestamptz(3) not null default clock_timestamp(),
  -- Null while live processes still join the epoch.
  opened_at timestamptz(3),
  -- The counter store's count of the calls of all accounts in this epoch, as batches have recorded it.
  store_calls bigint not null default 0
);

-- Accounts of the counter store. Rows of closed accounts stay as long as the ledger rows of their time (partitions.ts): a
-- journal may come back after days, and a counter store after a weekend. On Workers an account is one request with the id
-- of its ledger row: the ledger row closes the account, which has no row here.
create table gateway_operator.account (
  instance_uid text not null,
  account uuid not null,
  -- The number of the last batch that was booked, and the number of the last answered call at that time.
  booked_batch bigint not null,
  call_number bigint not null,
  closed_at timestamptz(3),
  -- Begun: a closing charges the figures of the account, page by page. Done: all are charged. Null: not closed, or
  -- closed by a stop of its own process, which charges nothing and books its requests by their ids.
  closing text check (closing in ('begun', 'done')),
  primary key (instance_uid, account)
) with (fillfactor = 70);

-- The charge of a closed account in one counter: its ledger row, which has the kind expired.
create table gateway_operator.expired_row (
  instance_uid text not null,
  account uuid not null,
  scope_id uuid not null,
  window_start bigint not null,
  window_end bigint not null,
  id uuid not null,
  primary key (instance_uid, account, scope_id, window_start, window_end),
  foreign key (instance_uid, account) references gateway_operator.account on delete cascade
);

-- Heartbeats of gateway processes.
create table gateway_operator.gateway_process (
  instance_uid text not null,
  process text not null,
  -- The epoch in which the process has reported its reservations; 0: none.
  epoch bigint not null,
  -- The address of its counter store, and when it started, in milliseconds since the Unix epoch.
  store text not null,
  started_at bigint not null,
  seen_at timestamptz(3) not null,
  left_at timestamptz(3),
  primary key (instance_uid, process)
);
`;

// Which tables are there, and how did they come about? Versions are only ever appended.
import type { Millis } from '#core/ports/money.ts';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  /** How long it may take: an index over ten million rows needs more than the usual silence. */
  readonly limit?: Millis;
}

/**
 * A migration only adds, so that the version before it goes on working beside it (a rolling update mixes two); what
 * nobody uses any more is dropped one version later. Windows are milliseconds since the epoch, exact in every language.
 */
export const MIGRATIONS: ReadonlyArray<Migration> = [
  {
    version: 1,
    name: 'claims, values, policies, entries, sums',
    sql: `
create table gateway_operator.instance (
  uid text primary key,
  namespace text not null,
  name text not null,
  opened_at timestamptz(3) not null default now(),
  closed_at timestamptz(3)
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
  charges uuid[] not null default '{}'
);
create unique index claim_alias on gateway_operator.claim (instance_uid, kind, alias) where retired_at is null;

create table gateway_operator.key_value (
  scope_id uuid not null references gateway_operator.claim,
  hash text collate "C" not null,
  created_at timestamptz(3) not null default date_trunc('milliseconds', clock_timestamp()),
  not_after timestamptz(3),
  retired_at timestamptz(3),
  primary key (scope_id, hash)
);
create unique index key_value_hash on gateway_operator.key_value (hash) where retired_at is null;

-- Append-only. The id is a UUIDv7: its time picks the month, and (id, kind) is unique over all months.
create table gateway_operator.entry (
  id uuid not null,
  kind text not null check (kind in ('settled', 'expired', 'correction')),
  instance_uid text not null,
  cost bigint not null check (cost >= 0 or kind = 'correction'),
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_input_tokens bigint not null,
  cache_write_tokens bigint not null,
  model text not null,
  identifier text not null,
  estimated boolean not null,
  settled_at timestamptz(3) not null,
  primary key (id, kind)
) partition by range (id);

-- Which scopes paid an entry, out of which window.
create table gateway_operator.charge (
  scope_id uuid not null,
  id uuid not null,
  kind text not null,
  window_start bigint not null,
  window_end bigint not null,
  cost bigint not null
) partition by range (id);
create index charge_scope on gateway_operator.charge (scope_id, id) include (cost);

create table gateway_operator.sum (
  scope_id uuid not null,
  window_start bigint not null,
  window_end bigint not null,
  amount numeric not null,
  primary key (scope_id, window_start, window_end)
) with (fillfactor = 70);

-- The same charges by the hour of the entry's id (hours since the epoch): what makes a recount cheap.
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

-- What PostgreSQL would not take, as it came; a person decides.
create table gateway_operator.entry_rejected (
  id text not null,
  kind text not null,
  instance_uid text not null,
  entry json not null,
  reason text not null,
  rejected_at timestamptz(3) not null default now(),
  primary key (id, kind)
);
`,
  },
  {
    version: 2,
    name: 'values remember what was asked for',
    sql: `
alter table gateway_operator.key_value add column asked text;
`,
  },
  {
    version: 3,
    name: 'instances know their cluster, and whose ledger they went on with',
    sql: `
alter table gateway_operator.instance
  add column cluster text,
  add column adopted_from text,
  add column adopted_at timestamptz(3),
  add column adopted_by text;
`,
  },
  {
    version: 4,
    name: 'epochs of stores, and the gateway processes that join them',
    sql: `
create table gateway_operator.store_epoch (
  instance_uid text primary key,
  epoch bigint not null,
  raised_at timestamptz(3) not null default clock_timestamp(),
  -- Null while the processes that live still join it.
  opened_at timestamptz(3)
);

create table gateway_operator.gateway_process (
  instance_uid text not null,
  process text not null,
  -- The epoch under which the store has what this process holds.
  epoch bigint not null,
  -- How many calls the store had answered it under that epoch when it last booked.
  calls bigint not null default 0,
  seen_at timestamptz(3) not null,
  left_at timestamptz(3),
  primary key (instance_uid, process)
);
`,
  },
  {
    version: 5,
    name: 'entries name who pays; charges are added up by scope and second; months that were dropped',
    sql: `
alter table gateway_operator.entry
  -- Who pays, out of which windows: as many of each.
  add column scope_ids uuid[],
  add column window_starts bigint[],
  add column window_ends bigint[];

-- One row per scope, second and batch. Its id is the least one of that second: windows begin with whole seconds.
alter table gateway_operator.charge
  alter column kind drop not null,
  alter column window_start drop not null,
  alter column window_end drop not null;

-- Like 2026_01. Nobody can tell any more whether an entry of that time was booked.
create table gateway_operator.dropped_month (
  month text primary key,
  dropped_at timestamptz(3) not null default now()
);
`,
  },
  {
    version: 6,
    name: 'removals that were released and are not done yet',
    sql: `
-- Scopes and uids of keys, by the name of the plan that removes them.
create table gateway_operator.release (
  instance_uid text not null,
  plan text not null,
  ids text[] not null,
  primary key (instance_uid, plan)
);
`,
  },
  {
    version: 7,
    name: 'claims know the generation that their policy was made of',
    sql: `
alter table gateway_operator.claim add column generation bigint;
`,
  },
];

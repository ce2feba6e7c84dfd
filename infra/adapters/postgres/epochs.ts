// The epoch of an instance, the store to which it belongs, and the processes that have joined it (LEDGER 6).
import type { EpochState, Epochs, EpochUser } from '#core/ports/epochs.ts';
import { requireVersion } from './schema.ts';
import { GATEWAY_LIMIT as LIMIT, type Query, type Session } from './session.ts';

/** A process without a heartbeat for this long counts as dead. Heartbeats come every two seconds. */
const ALIVE = `interval '5 seconds'`;
const REMEMBERED = `interval '12 hours'`;

/**
 * Bookings and closings share this lock. A raise and an opening take it exclusively: they wait for those in progress,
 * and later ones see the new state. So none of them locks the row of the epoch before other rows: it is the last one
 * (insert-batch.ts).
 */
export const EPOCH_LOCK = 'hashtextextended($1, 7203418869)';

/**
 * Raises the epoch. Of many concurrent raises one succeeds. One statement, so that a suspended process keeps no lock.
 * Processes of a deleted instance raise nothing, since nobody would delete the counters that they write.
 */
const RAISE = `
with alone as materialized (select pg_advisory_xact_lock(${EPOCH_LOCK})),
deleted as (select from gateway_operator.instance where uid = $1 and closed_at is not null),
forgotten as (
  delete from gateway_operator.gateway_process where instance_uid = $1 and seen_at < clock_timestamp() - ${REMEMBERED}),
raised as (
  insert into gateway_operator.store_epoch as e (instance_uid, epoch, store)
  select $1, $3::bigint + 1, $4 from alone where not exists (select from deleted)
  on conflict (instance_uid) do update
    set epoch = greatest(e.epoch, $3::bigint) + 1, store = $4, raised_at = clock_timestamp(), opened_at = null, store_calls = 0
    where e.epoch = $2::bigint
  returning e.epoch)
select exists (select from deleted) as "isDeleted", (select epoch::float8 from raised) as epoch`;

const WRITE_HEARTBEAT = `
insert into gateway_operator.gateway_process as p (instance_uid, process, epoch, store, started_at, seen_at)
values ($1, $2, $3::bigint, $4, $5::bigint, clock_timestamp())
on conflict (instance_uid, process) do update
  set epoch = $3::bigint, store = $4, started_at = $5::bigint, seen_at = clock_timestamp(), left_at = null`;

const STATE = `
with state as (
  select coalesce(max(epoch), 0) as epoch, coalesce(bool_and(opened_at is not null), false) as is_open,
    coalesce(max(extract(epoch from clock_timestamp() - raised_at) * 1000), 0)::bigint as age, coalesce(max(store_calls), 0) as store_calls,
    coalesce(max(store), $2) as store
  from gateway_operator.store_epoch where instance_uid = $1),
live as (
  select * from gateway_operator.gateway_process
  where instance_uid = $1 and left_at is null and seen_at > clock_timestamp() - ${ALIVE})
select (select max(version) from gateway_operator.migration) as version, state.epoch::float8 as epoch, state.is_open as "isOpen", state.age::float8 as age, state.store_calls::float8 as "storeCalls",
  state.store <> $2 as "isOfOtherStore",
  exists (
    select from live where (live.store <> $2 or live.epoch = nullif(state.epoch, 0)) and live.started_at > $3::bigint) as "hasLaterProcess",
  (select count(*)::integer from live where live.store = state.store and live.epoch < state.epoch) as "notJoined",
  (select count(*)::integer from live where live.store <> state.store and live.epoch > 0) as "liveOnOtherStores"
from state`;

export function createEpochs(session: Session, instanceUid: string, user: EpochUser): Epochs {
  const { store, startedAt } = user;
  return {
    heartbeat: (process, joinedEpoch) =>
      session.run(LIMIT, async (query) => {
        await query(WRITE_HEARTBEAT, [instanceUid, process, joinedEpoch, store, startedAt]);
        return readState(query, instanceUid, user);
      }),
    state: () => session.run(LIMIT, (query) => readState(query, instanceUid, user)),
    raise: async (from, above) => {
      const [row] = await session.query<RaiseReply>(LIMIT, RAISE, [instanceUid, from, above, store]);
      if (row?.isDeleted) throw new Error('the GatewayInstance of this process is deleted');
      return row?.epoch ?? undefined;
    },
    open: async (epoch) => void (await session.query(LIMIT, OPEN, [instanceUid, epoch])),
    leave: async (process) => void (await session.query(LIMIT, LEAVE, [instanceUid, process])),
  };
}

interface RaiseReply {
  readonly isDeleted: boolean;
  readonly epoch: number | null;
}

const OPEN = `
with alone as materialized (select pg_advisory_xact_lock(${EPOCH_LOCK}))
update gateway_operator.store_epoch set opened_at = clock_timestamp() from alone
where instance_uid = $1 and epoch = $2 and opened_at is null`;

const LEAVE = `
update gateway_operator.gateway_process set left_at = clock_timestamp() where instance_uid = $1 and process = $2`;

async function readState(query: Query, instanceUid: string, { store, startedAt }: EpochUser): Promise<EpochState> {
  const values = [instanceUid, store, startedAt];
  const [row] = await query<EpochState & { readonly version: number | null }>(STATE, values);
  if (row === undefined) throw new Error('PostgreSQL returned no epoch');
  const { version, ...state } = row;
  requireVersion(version);
  return state;
}

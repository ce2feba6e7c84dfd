// Sets of ledger rows: what many rows of a day share is written once (docs/internals/ledger.md, section 8).
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { timeOf } from '../process/ids.ts';
import { literal } from './literal.ts';
import { DAY, uuidAt } from './partitions.ts';

/** The scopes of a ledger row with their windows, and the fields that are the same for most rows of a scope. */
export interface LedgerSet extends Pick<LedgerRow, 'scopeWindows' | 'model' | 'identifier' | 'estimated'> {
  readonly id: string;
  readonly day: number;
  /** All that decides the id, as a text. */
  readonly content: string;
  /** Whether this process has seen the set in PostgreSQL. */
  readonly isKnown: boolean;
}

type KnownSets = ReturnType<typeof createKnownSets>;

/** The maximum characters of all known contents together: about 20,000 sets of three scopes. */
const MAX_CHARACTERS = 5_000_000;

/**
 * The sets that this process has seen in PostgreSQL. A known set is neither hashed nor looked for before a booking. It
 * may be gone nevertheless (a failover to a late replica, a day that a person dropped): `INSERT_ROWS` of each booking
 * finds that out, in its transaction.
 */
export function createKnownSets() {
  // Without `max`, which would take 3 ms to make: on Workers each request has its own.
  const ids = new LRUCache<string, string>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_, content) => content.length,
  });
  const latestOf = new WeakMap<LedgerRow['scopeWindows'], LedgerSet>();
  return {
    idOf: (content: string): string | undefined => ids.get(content),
    /** The latest known set with this list of scope windows, which the rows of a VirtualKey share for some seconds. */
    latestOf: (scopeWindows: LedgerRow['scopeWindows']): LedgerSet | undefined => latestOf.get(scopeWindows),
    add(set: LedgerSet): void {
      ids.set(set.content, set.id);
      latestOf.set(set.scopeWindows, { ...set, isKnown: true });
    },
  };
}

export type LedgerSets = ReturnType<typeof createSets>;

/** Finds the sets of the rows of a batch. */
export function createSets(instanceUid: string, known?: KnownSets) {
  const sets = new Map<LedgerRow, LedgerSet>();
  const byContent = new Map<string, LedgerSet>();
  const latestOf = new Map<LedgerRow['scopeWindows'], LedgerSet>();
  const find = (row: LedgerRow): LedgerSet => {
    const { scopeWindows, model, identifier, estimated } = row;
    const day = Math.floor((timeOf(row.id) ?? 0) / DAY);
    const latest = latestOf.get(scopeWindows) ?? known?.latestOf(scopeWindows);
    if (latest !== undefined && latest.day === day && hasSameFields(latest, row)) return latest;
    const content = contentOf(instanceUid, day, row);
    const knownId = known?.idOf(content);
    const isKnown = knownId !== undefined;
    const set = byContent.get(content) ?? {
      ...{ id: knownId ?? setId(day, content), content, isKnown, day },
      ...{ scopeWindows, model, identifier, estimated },
    };
    byContent.set(content, set);
    latestOf.set(scopeWindows, set);
    return set;
  };
  const setOf = (row: LedgerRow): LedgerSet => {
    const set = sets.get(row) ?? find(row);
    sets.set(row, set);
    return set;
  };
  return {
    of: (rows: ReadonlyArray<LedgerRow>): ReadonlyArray<LedgerSet> => rows.map(setOf),
    idOf: (row: LedgerRow): string => setOf(row).id,
  };
}

const hasSameFields = (set: LedgerSet, { model, identifier, estimated }: LedgerRow): boolean =>
  set.model === model && set.identifier === identifier && set.estimated === estimated;

/** These sets, each once, in the order in which all bookings write them. */
export function sortSets(sets: ReadonlyArray<LedgerSet>): ReadonlyArray<LedgerSet> {
  const byId = new Map(sets.map((set) => [set.id, set]));
  return [...byId.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

function contentOf(instanceUid: string, day: number, row: LedgerRow): string {
  const { scopeWindows, model, identifier, estimated } = row;
  let content = `${scopeWindows.length}`;
  for (const { scopeId, window } of scopeWindows) content += ` ${scopeId} ${window.start} ${window.end}`;
  // The length shows where the model ends.
  return `${content} ${instanceUid} ${day} ${estimated} ${model.length} ${model}${identifier}`;
}

/**
 * The same content has the same id in all processes on one day, so a set is inserted once without a look-up before it.
 * The time in the id is a millisecond of the day. All of the id is made from a SHA-256 of the content.
 */
function setId(day: number, content: string): string {
  const hash = createHash('sha256').update(content).digest('hex');
  return uuidAt(day * DAY + (Number.parseInt(hash.slice(0, 12), 16) % DAY), hash.slice(12, 32));
}

/** Returns those of these sets that are absent. The bounds of the ids exclude the other days. */
export const ABSENT_SETS = `
select id::text from unnest($1::uuid[]) as t (id)
where (select true from gateway_operator.ledger_set s where s.id = t.id and s.id >= $2::uuid and s.id <= $3::uuid) is null`;

/** A set that is there already, also in a transaction of another process, does not change. */
export const INSERT_SETS = `
insert into gateway_operator.ledger_set (id, instance_uid, model, identifier, estimated, scope_ids, window_starts, window_ends)
select id, $1, model, identifier, estimated, ($6::uuid[])[first:last], ($7::bigint[])[first:last], ($8::bigint[])[first:last]
from unnest($2::uuid[], $3::text[], $4::text[], $5::boolean[], $9::int[], $10::int[])
  as t (id, model, identifier, estimated, first, last)
on conflict (id) do nothing`;

/** One array per column of `INSERT_SETS`, after the instance. */
export function toSetColumns(sets: ReadonlyArray<LedgerSet>): ReadonlyArray<unknown> {
  let end = 0;
  const lasts = sets.map(({ scopeWindows }) => (end += scopeWindows.length));
  const scopeWindows = sets.flatMap((set) => set.scopeWindows);
  return [
    literal(sets, ({ id }) => id),
    sets.map(({ model }) => model),
    sets.map(({ identifier }) => identifier),
    literal(sets, ({ estimated }) => estimated),
    literal(scopeWindows, ({ scopeId }) => scopeId),
    literal(scopeWindows, ({ window }) => window.start),
    literal(scopeWindows, ({ window }) => window.end),
    literal(
      sets.map(({ scopeWindows: { length } }, index) => (lasts[index] ?? 0) - length + 1),
      (first) => first,
    ),
    literal(lasts, (last) => last),
  ];
}

// Operations that wait for the next store call: at most 64 operations and 2,000 arguments in one, in their order of execution (LEDGER 3).
import type { MoveAnswer, MoveOperation } from '../ports/rates.ts';
import type {
  HoldAnswer,
  HoldOperation,
  ReleaseAnswer,
  ReleaseOperation,
  SettleAnswer,
  SettleOperation,
  StoreCall,
} from '../ports/store.ts';

/** An operation, and the promise of its answer. */
export interface Pending<Operation, Answer> {
  readonly operation: Operation;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

export interface PendingOperations {
  settles: Pending<SettleOperation, SettleAnswer>[];
  releases: Pending<ReleaseOperation, ReleaseAnswer>[];
  renewals: StoreCall['renewals'][number][];
  loads: Pending<StoreCall['loads'][number], void>[];
  holds: Pending<HoldOperation, HoldAnswer>[];
  moves: Pending<MoveOperation, MoveAnswer>[];
}

const MAX_OPERATIONS = 64;
const MAX_ARGUMENTS = 2000;

export const noOperations = (): PendingOperations => ({
  ...{ settles: [], releases: [], renewals: [], loads: [], holds: [], moves: [] },
});

export const isEmpty = (operations: PendingOperations): boolean =>
  Object.values(operations).every((list) => list.length === 0);

/** Takes the operations that fit one call out of `waiting`. */
export function takeFitting(waiting: PendingOperations): PendingOperations {
  const room = { operations: MAX_OPERATIONS, arguments: MAX_ARGUMENTS };
  return {
    settles: cut(waiting.settles, room, ({ operation }) => 4 + 3 * (operation.counters?.length ?? 0)),
    releases: cut(waiting.releases, room, () => 2),
    renewals: cut(waiting.renewals, room, () => 3),
    loads: cut(waiting.loads, room, () => 4),
    holds: cut(waiting.holds, room, ({ operation }) => 9 + 4 * operation.note.charges.length + ratesIn(operation)),
    moves: cut(waiting.moves, room, () => 6),
  };
}

const ratesIn = ({ rates }: HoldOperation): number =>
  rates === undefined ? 0 : 1 + 4 * (rates.limits.length + rates.entries.length);

function cut<T>(list: T[], room: { operations: number; arguments: number }, size: (item: T) => number): T[] {
  let count = 0;
  for (const item of list) {
    // The first operation of a call is always taken, or a large one would wait for ever.
    if (room.operations < 1 || (room.arguments < size(item) && room.operations < MAX_OPERATIONS)) break;
    room.operations -= 1;
    room.arguments -= size(item);
    count += 1;
  }
  return count === 0 ? [] : list.splice(0, count);
}

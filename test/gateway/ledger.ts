// The ledger of gateway tests: limits, reservations and windows as the real one keeps them, in a few maps.
import { parseMoney } from '#core/money/money.ts';
import { windowAt } from '#core/money/window.ts';
import type { Ledger, ReservationParams, Settlement } from '#core/ports/ledger.ts';
import type { ScopePolicy } from '#core/ports/policy.ts';

export interface SettledRequest extends Settlement {
  readonly reservation: string;
}

/** A ledger of one process. Nothing in it is durable. */
export interface LedgerFake extends Ledger {
  /** The reservations that requests asked for. */
  readonly asked: ReservationParams[];
  readonly settled: SettledRequest[];
  readonly released: string[];
  /** The amounts by which reservations have grown. */
  readonly grown: bigint[];
  /** The costs of streams so far. */
  readonly progressed: Array<() => bigint>;
  /** Calls the listeners of streams whose reservations may be lost. */
  lose(): void;
  /** The spend of the scope so far. */
  spent(scopeId: string): bigint;
  /** Adds a spend that no request of this ledger has. */
  spendNow(scopeId: string, dollars: string): void;
  fail(what: 'reserve' | 'settle' | undefined): void;
  liveReservations(): number;
}

export function createLedgerFake(now: () => number): LedgerFake {
  const open = new Map<string, { id: string; amount: bigint; scopes: ReadonlyArray<ScopePolicy>; scopeWindows: [] }>();
  const sums = new Map<string, bigint>();
  const asked: ReservationParams[] = [];
  const settled: SettledRequest[] = [];
  const released: string[] = [];
  const grown: bigint[] = [];
  const progressed: Array<() => bigint> = [];
  const losers: Array<() => void> = [];
  let failing: 'reserve' | 'settle' | undefined;
  let next = 0;

  const spent = (scopeId: string) => sums.get(scopeId) ?? 0n;
  const windowOf = ({ anchor, budget }: ScopePolicy) =>
    windowAt({ anchor, duration: budget?.duration ?? '30d', alignment: budget?.alignment ?? 'Rolling' }, now());
  const reservedOf = (scopeId: string) =>
    [...open.values()]
      .filter(({ scopes }) => scopes.some((scope) => scope.scopeId === scopeId))
      .reduce((sum, { amount }) => sum + amount, 0n);
  const spends = (scopes: ReadonlyArray<ScopePolicy>) =>
    scopes.map((scope) =>
      scope.budget === undefined
        ? undefined
        : { scopeId: scope.scopeId, window: windowOf(scope), spent: spent(scope.scopeId) },
    );

  return {
    asked,
    settled,
    released,
    grown,
    progressed,
    spent,
    liveReservations: () => open.size,
    spendNow: (scopeId, dollars) => void sums.set(scopeId, spent(scopeId) + (parseMoney(dollars) ?? 0n)),
    fail: (what) => {
      failing = what;
    },
    reserve: async (request) => {
      asked.push(request);
      if (failing === 'reserve') return { ok: false, failure: { reason: 'unavailable', why: 'the store is away' } };
      let amount = request.amount;
      for (const scope of request.scopes) {
        if (scope.budget === undefined) continue;
        const limit = BigInt(scope.budget.limit);
        const left = limit - spent(scope.scopeId);
        if (left <= 0n || left < request.minAmount) {
          const resetAt = windowOf(scope).end;
          return { ok: false, failure: { reason: 'exceeded', scope, spent: spent(scope.scopeId), limit, resetAt } };
        }
        if (left < amount) amount = left;
        if (request.amount > 0n && left - reservedOf(scope.scopeId) < amount) {
          return { ok: false, failure: { reason: 'held', scope } };
        }
      }
      next += 1;
      const id = request.id ?? `reservation-${next}`;
      const reservation = { id, amount, scopes: request.scopes, scopeWindows: [] as [] };
      open.set(id, reservation);
      return { ok: true, value: reservation };
    },
    grow: async ({ id }, by) => {
      const reservation = open.get(id);
      if (reservation === undefined)
        return { ok: false, failure: { reason: 'unavailable', why: 'the reservation has ended' } };
      const full = reservation.scopes.find(({ scopeId, budget }) => {
        return budget !== undefined && BigInt(budget.limit) < spent(scopeId) + reservedOf(scopeId) + by;
      });
      if (full !== undefined) return { ok: false, failure: { reason: 'held', scope: full } };
      reservation.amount += by;
      grown.push(by);
      return { ok: true, value: undefined };
    },
    trackStream: (_reservation, known, lost) => {
      progressed.push(known);
      if (lost !== undefined) losers.push(lost);
    },
    lose: () => {
      for (const lost of losers.splice(0)) lost();
    },
    settle: async (reservation, settlement) => {
      if (failing === 'settle') throw new Error('the disk is full');
      const live = open.get(reservation.id);
      if (live === undefined) return;
      open.delete(reservation.id);
      settled.push({ ...settlement, reservation: reservation.id });
      for (const { scopeId } of live.scopes) sums.set(scopeId, spent(scopeId) + settlement.cost);
    },
    release: async (reservation) => {
      if (open.delete(reservation.id)) released.push(reservation.id);
    },
    moveToModelEntry: async () => ({ ok: true, value: undefined }),
    spend: async (scopes) => {
      if (failing === 'reserve') return { ok: false, failure: { reason: 'unavailable', why: 'the store is away' } };
      return { ok: true, value: spends(scopes) };
    },
    knownSpend: spends,
    flush: async () => {},
    close: async () => {},
  };
}

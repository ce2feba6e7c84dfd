// Ends of reservations: settled or released, once in the journal, the store and PostgreSQL; and what streams have
// produced so far (LEDGER 1, 3, 6).

import type { Settlement } from '../ports/ledger.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { addCharge, endReservation, recordStreamCost } from './account.ts';
import type { LedgerContext, Settlements } from './context.ts';
import { type CounterState, isGuaranteed } from './counters.ts';
import { report } from './failures.ts';
import { append } from './journal-records.ts';
import { toUnsettledRow } from './ledger-rows.ts';
import { giveBack, type RateUsage } from './rates.ts';
import { type LiveReservation, limitsOf, liveOf } from './requests.ts';

/**
 * The longest request (upstream.ts enforces this): a reservation that is never ended does not keep headroom for longer.
 */
export const MAX_REQUEST: Millis = 3_600_000;
/** When the store is silent for so long, a reply ends all the same. */
const GUARANTEE_TIMEOUT: Millis = 2000;
/** Labels that come in the same object cost nothing (ports/clock.ts). */
const KINDS = { settled: { kind: 'settled' }, released: { kind: 'released' } };

export function createSettlements(context: LedgerContext): Settlements {
  const { account, journal, clock, timer, metrics, log } = context;
  const uncovered = new Set<{ readonly counters: ReadonlyArray<CounterState>; readonly over: () => void }>();

  /** Resolves when the store could charge these if process and disk were lost. Undefined: it can already. */
  const covered = (counters: ReadonlyArray<CounterState>): Promise<void> | undefined => {
    if (counters.every(isGuaranteed)) return undefined;
    return new Promise((resolve) => {
      const over = (): void => {
        uncovered.delete(reply);
        cancel();
        resolve();
      };
      const reply = { counters, over };
      const cancel = timer(GUARANTEE_TIMEOUT, over);
      uncovered.add(reply);
      context.sync.callNow();
    });
  };

  /** The reservation takes nothing any more: its escrow is idle, its place in rates is free. */
  const over = (live: LiveReservation, kind: keyof typeof KINDS, used: RateUsage): void => {
    endReservation(account, live, kind === 'settled' ? 'unreported' : 'released');
    for (const taken of limitsOf(live.rateUse)) giveBack(account, taken, used);
    for (const counter of live.counters) if (counter.waitQueue.size > 0) context.reservations.onEscrowFreed(counter);
    context.sync.callSoon();
    metrics.add('gateway_operator_ledger_settles_total', KINDS[kind]);
  };

  /**
   * Resolves when the settlement is on disk, and the store could charge it if the disk were lost; without a disk, when
   * PostgreSQL has it.
   */
  const settleOnce = async (live: LiveReservation, settlement: Settlement): Promise<void> => {
    const { id, scopeWindows, counters } = live;
    const { cost, tokens, model, identifier, estimated } = settlement;
    const settledAt = account.now();
    const entry: LedgerRow = {
      id,
      kind: 'settled',
      scopeWindows,
      cost,
      tokens,
      model,
      identifier,
      estimated,
      settledAt,
    };
    // Only a reservation whose record is on disk, or cannot be, gives up its escrow: a restart without the record
    // charges its size.
    const isWritten = await append(context, { type: 'settle', row: entry });
    // A stream is covered by what it was told to have produced.
    const cover = live.isStream && live.atRisk < cost ? live.atRisk : cost;
    addCharge(account, { row: entry, counters, guaranteed: cover, endedAt: clock.now() });
    over(live, 'settled', { requests: 1, tokens: tokens.input + tokens.output });
    await (isWritten ? covered(counters) : context.booking.flush());
  };

  const release = async (live: LiveReservation, called: boolean): Promise<void> => {
    if (await append(context, { type: 'release', id: live.id })) journal.done([live.id]);
    over(live, 'released', { requests: called ? 1 : 0, tokens: 0 });
  };

  const settlements: Settlements = {
    /** An answer came: replies whose counters are covered now continue. */
    onReported(): void {
      for (const { counters, over } of uncovered) if (counters.every(isGuaranteed)) over();
    },
    trackStream(reservation, costSoFar, onAccountClosed): void {
      const live = liveOf(reservation);
      if (live === undefined || live.ending !== undefined) return;
      live.costSoFar = costSoFar;
      live.onAccountClosed = onAccountClosed;
    },
    settle(reservation, settlement): Promise<void> {
      const live = liveOf(reservation);
      if (live === undefined || live.ending !== undefined) return live?.ending ?? Promise.resolve();
      const { cost } = settlement;
      if (cost < 0n) return Promise.reject(new Error(`a reply cannot cost ${cost}`));
      if (cost > live.amount) {
        metrics.add('gateway_operator_ledger_overruns_total');
        log.warn('a reply cost more than its reservation', { id: live.id, held: `${live.amount}`, cost: `${cost}` });
      }
      live.costSoFar = undefined;
      live.ending = settleOnce(live, settlement);
      return live.ending;
    },
    async release(reservation, how): Promise<void> {
      const live = liveOf(reservation);
      if (live === undefined || live.ending !== undefined) return live?.ending;
      live.costSoFar = undefined;
      live.ending = release(live, how?.called === true);
      return live.ending;
    },
    /**
     * Called every second: streams tell what they have produced, and a request that was never ended is charged like one
     * of a process that died.
     */
    beat(): void {
      const now = clock.now();
      for (const live of [...account.requests.reserved]) {
        const known = costSoFarOf(context, live);
        if (now - live.reservedAt < MAX_REQUEST) {
          if (known !== undefined) writeProgress(context, live, known);
          continue;
        }
        if (live.ending !== undefined) continue;
        const entry = toUnsettledRow(live, known ?? live.amount, account.now());
        log.warn('a reservation was not ended within an hour, and is charged', { id: live.id, cost: `${entry.cost}` });
        settlements.settle(live, entry).catch((error) => report(context, 'charge', error, { id: live.id }));
      }
    },
    /** Resolves when what still lives is charged like the requests of a process that died. */
    async chargeLive(): Promise<void> {
      const now = account.now();
      const charged = account.requests.reserved.map((live) => {
        if (live.ending === undefined) log.warn('a request had not ended at the stop, and is charged', { id: live.id });
        return settlements.settle(live, toUnsettledRow(live, costSoFarOf(context, live) ?? live.amount, now));
      });
      await Promise.allSettled(charged);
    },
  };
  return settlements;
}

/** The reply's cost so far. A request that cannot tell it counts with its whole reservation from then on. */
function costSoFarOf(context: LedgerContext, live: LiveReservation): Nano | undefined {
  try {
    const known = live.costSoFar?.();
    if (known !== undefined && known < 0n) throw new Error(`a reply cannot have cost ${known}`);
    return known;
  } catch (error) {
    report(context, 'cost', error, { id: live.id });
    live.costSoFar = () => live.amount;
    return live.amount;
  }
}

function writeProgress(context: LedgerContext, live: LiveReservation, known: Nano): void {
  recordStreamCost(context.account, live, known);
  if (known === live.writtenCost) return;
  live.writtenCost = known;
  void append(context, { type: 'progress', id: live.id, cost: known });
}

// Ends of reservations: settled or released, exactly once in the journal, the store and PostgreSQL; and the costs of
// streams so far (LEDGER 1, 3, 6).

import { NO_TOKENS } from '../money/usage.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { LedgerRow } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { type RequestEnd, usageAtEnd } from '../ports/rates.ts';
import { addEndedRequest, endReservation, recordStreamCost } from './account.ts';
import type { LedgerContext, Settlements } from './context.ts';
import { type CounterState, isCovered } from './counters.ts';
import { logFailure } from './failures.ts';
import { append } from './journal-records.ts';
import { toEstimatedRow } from './journal-replay.ts';
import { returnRate } from './rates.ts';
import { type LiveReservation, limitsOf, liveOf } from './requests.ts';

/**
 * The maximum duration of a request (upstream.ts enforces it): a reservation that is never ended does not keep money
 * for longer.
 */
export const MAX_REQUEST_TIME: Millis = 3_600_000;
/**
 * The time after which the reply to the client ends although the store has not replied. If process and disk are lost
 * then, the charge is lost too.
 */
const COVER_TIMEOUT: Millis = 2000;
/** Labels as constant objects, which are encoded once (ports/telemetry.ts). */
const END_LABELS = { settled: { kind: 'settled' }, released: { kind: 'released' } };

export function createSettlements(context: LedgerContext): Settlements {
  const { account, journal, intervalClock, timer, metrics, log } = context;
  const waitingSettlements = new Set<{ readonly counters: ReadonlyArray<CounterState>; readonly end: () => void }>();

  /** Resolves when the reported risk covers the costs in these counters. Undefined: it covers them already. */
  const whenCovered = (counters: ReadonlyArray<CounterState>): Promise<void> | undefined => {
    if (counters.every(isCovered)) return undefined;
    return new Promise((resolve) => {
      const end = (): void => {
        waitingSettlements.delete(waiting);
        cancel();
        resolve();
      };
      const waiting = { counters, end };
      const cancel = timer(COVER_TIMEOUT, end);
      waitingSettlements.add(waiting);
      context.sync.callNow();
    });
  };

  /** Ends the reservation: its escrow becomes idle, and its use of rates is returned. */
  const endLive = (live: LiveReservation, kind: keyof typeof END_LABELS, end: Omit<RequestEnd, 'estimates'>): void => {
    endReservation(account, live, kind === 'settled' ? 'unreported' : 'released');
    const { rateUse } = live;
    if (rateUse !== undefined) {
      const usage = usageAtEnd({ ...end, estimates: rateUse.estimates });
      for (const use of limitsOf(rateUse)) returnRate(account, use, usage);
    }
    for (const counter of live.counters)
      if (counter.waitingRequests.size > 0) context.reservations.onEscrowFreed(counter);
    context.sync.callSoon();
    metrics.add('gateway_operator_ledger_reservation_ends_total', END_LABELS[kind]);
  };

  /**
   * Resolves when the settlement is on disk, and the store could charge it if the disk were lost; without a disk, when
   * PostgreSQL has it.
   */
  const settleOnce = async (live: LiveReservation, settlement: Settlement): Promise<void> => {
    const { id, scopeWindows, counters } = live;
    const { cost, tokens, model, identifier, estimated } = settlement;
    const settledAt = account.now();
    const row: LedgerRow = {
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
    // The escrow is given up only after the record is on disk or the disk has refused it: a restart without the record
    // charges the whole amount.
    const isWritten = await append(context, { type: 'settle', row });
    // Of a stream, only the cost so far that `checkLive` has recorded last must be covered: what the stream has cost
    // since then is lost if process and disk are lost now (LEDGER 1).
    const costToCover = live.isStream && live.atRisk < cost ? live.atRisk : cost;
    addEndedRequest(account, { row, counters, costToCover, endedAt: intervalClock.now() });
    endLive(live, 'settled', { isCalled: true, tokens });
    const waiting = isWritten ? whenCovered(counters) : context.booking.flush();
    if (waiting !== undefined) await waiting;
  };

  const release = async (live: LiveReservation, isCalled: boolean): Promise<void> => {
    if (await append(context, { type: 'release', id: live.id })) journal.drop([live.id]);
    endLive(live, 'released', { isCalled, tokens: NO_TOKENS });
  };

  const settlements: Settlements = {
    onReported(): void {
      for (const { counters, end } of waitingSettlements) if (counters.every(isCovered)) end();
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
      if (cost < 0n) return Promise.reject(new Error(`the cost of a reply cannot be negative: ${cost}`));
      if (cost > live.amount) {
        metrics.add('gateway_operator_ledger_overruns_total');
        log.warn('ledger: a reply cost more than its reservation', {
          id: live.id,
          reserved: `${live.amount}`,
          cost: `${cost}`,
        });
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
    checkLive(): void {
      const now = intervalClock.now();
      for (const live of [...account.requests.reserved]) {
        const costSoFar = costSoFarOf(context, live);
        if (now - live.reservedAt < MAX_REQUEST_TIME) {
          if (costSoFar !== undefined) writeProgress(context, live, costSoFar);
          continue;
        }
        if (live.ending !== undefined) continue;
        const row = toEstimatedRow(live, costSoFar ?? live.amount, account.now());
        log.warn('ledger: a reservation did not end within an hour, and is charged', {
          id: live.id,
          cost: `${row.cost}`,
        });
        settlements.settle(live, row).catch((error) => logFailure(context, 'charge', error, { id: live.id }));
      }
    },
    async chargeLive(): Promise<void> {
      const now = account.now();
      const pendingSettlements = account.requests.reserved.map((live) => {
        if (live.ending === undefined)
          log.warn('ledger: a request had not ended at the stop, and is charged', { id: live.id });
        return settlements.settle(live, toEstimatedRow(live, costSoFarOf(context, live) ?? live.amount, now));
      });
      await Promise.allSettled(pendingSettlements);
    },
  };
  return settlements;
}

/** The reply's cost so far. If it cannot be computed, the whole reservation counts from then on. */
function costSoFarOf(context: LedgerContext, live: LiveReservation): Nano | undefined {
  try {
    const cost = live.costSoFar?.();
    if (cost !== undefined && cost < 0n) throw new Error(`the cost of a reply cannot be negative: ${cost}`);
    return cost;
  } catch (error) {
    logFailure(context, 'cost', error, { id: live.id });
    live.costSoFar = () => live.amount;
    return live.amount;
  }
}

function writeProgress(context: LedgerContext, live: LiveReservation, cost: Nano): void {
  recordStreamCost(context.account, live, cost);
  if (cost === live.writtenCost) return;
  live.writtenCost = cost;
  void append(context, { type: 'progress', id: live.id, cost });
}

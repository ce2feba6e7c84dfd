// Ledger rows of a closing: the risk and the unbooked spend of an account, in one row per counter (LEDGER 3).
import type { AccountClosing } from '#core/ports/ledger-database.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Random } from '#core/ports/platform.ts';
import { createIds } from '../process/ids.ts';

/**
 * The expired rows of a closing. `bookedBatch`: the last batch that was booked. No row if risk and unbooked spend
 * cancel out. A negative row if the unbooked spend is a correction: the store has counted it already, and nothing else
 * will book it.
 */
export function toExpiredRows(
  { figures, at }: AccountClosing,
  bookedBatch: number,
  random: Random,
): ReadonlyArray<LedgerRow> {
  let time = at;
  // One source of ids draws random numbers for many ids together.
  const ids = createIds({ clock: { now: () => time }, random });
  return figures.flatMap(({ scopeId, window, risk, unbookedSpend }): LedgerRow[] => {
    const cost = unbookedSpend.reduce((sum, { batch, spend }) => (batch > bookedBatch ? sum + spend : sum), risk);
    if (cost === 0n) return [];
    // A recount finds a ledger row by the time in its id, so the time is inside the charged window.
    time = Math.max(window.start, Math.min(at, window.end - 1));
    return [{ ...UNKNOWN, id: ids.next(), cost, scopeWindows: [{ scopeId, window }], settledAt: at }];
  });
}

/** The fields that are unknown: the store has no requests of an account, only what is at risk and unbooked spend. */
const UNKNOWN = {
  kind: 'expired',
  tokens: { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 },
  model: '',
  identifier: '',
  estimated: true,
} as const;

// Entries of a closing: what an account had at risk, and what it had told and never booked, one per counter (LEDGER 3).
import type { AccountClosing } from '#core/ports/ledger-database.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';
import { createIds } from '../process/ids.ts';

/**
 * The charges of a closing, given the last batch that was booked. Nothing where risk and unbooked spend cancel out.
 * Negative where the unbooked spend is a correction: the store has counted that already, and nobody else will book it.
 */
export function expiredEntries(
  { figures = [], at }: AccountClosing,
  booked: number,
  random: Random,
): ReadonlyArray<LedgerRow> {
  return figures.flatMap(({ scopeId, window, risk, unbooked }): LedgerRow[] => {
    const cost = unbooked.reduce((sum, { batch, spend }) => (batch > booked ? sum + spend : sum), risk);
    // A recount finds an entry by the time in its id: it lies in the window that pays.
    const time = Math.max(window.start, Math.min(at, window.end - 1));
    const id = idAt(time, random);
    return cost === 0n ? [] : [{ ...UNKNOWN, id, cost, scopeWindows: [{ scopeId, window }], settledAt: at }];
  });
}

/** Requests of an account are not told to the store: only what they may cost. */
const UNKNOWN = {
  kind: 'expired',
  tokens: { input: 0, output: 0, cachedInput: 0, cacheWrite: 0 },
  model: '',
  identifier: '',
  estimated: true,
} as const;

const idAt = (time: Millis, random: Random): string => createIds({ clock: { now: () => time }, random }).next();

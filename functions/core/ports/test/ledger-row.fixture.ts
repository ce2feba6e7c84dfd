// Ledger rows that tests book: small ones of November 2026, charged to scopes that have a number.
import type { LedgerRow } from '../ledger-rows.ts';
import type { Millis, Window } from '../money.ts';
import type { ScopeId, ScopeWindow } from '../policy.ts';

export const HOUR: Millis = 3_600_000;
export const DAY = 24 * HOUR;
export const NOON = Date.UTC(2026, 10, 15, 12);
export const WINDOW: Window = { start: NOON - 10 * DAY, end: NOON + 20 * DAY };

let idCount = 0;
/** A UUIDv7 of that instant, never the same twice. */
export function idAt(time: Millis): string {
  idCount += 1;
  const head = time.toString(16).padStart(12, '0');
  return `${head.slice(0, 8)}-${head.slice(8)}-7000-8000-${idCount.toString(16).padStart(12, '0')}`;
}

export function scopeNumber(number: number): ScopeId {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
}

export const scopeWindow = (number: number, window = WINDOW): ScopeWindow => ({ scopeId: scopeNumber(number), window });

export function ledgerRowOf(more: Partial<LedgerRow> = {}): LedgerRow {
  return {
    id: idAt(NOON),
    kind: 'settled',
    scopeWindows: [scopeWindow(1)],
    cost: 100n,
    tokens: { input: 10, output: 20, cachedInput: 3, cacheWrite: 4 },
    model: 'small',
    identifier: 'small-1',
    estimated: false,
    settledAt: NOON + 1500,
    ...more,
  };
}

// Entries of a hold that has ended: settled by its request, charged at its size or stream, corrected.
import type { AccountCharge } from '../ports/account-books.ts';
import type { Entry } from '../ports/books.ts';
import type { Settlement } from '../ports/ledger.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { NO_TOKENS } from '../usage.ts';

/** The fields of an entry that a hold has. */
export type HoldNote = Pick<Entry, 'charges' | 'model' | 'identifier'>;

export function toSettled(id: string, charges: Entry['charges'], settlement: Settlement, settledAt: Millis): Entry {
  const { cost, tokens, model, identifier, estimated } = settlement;
  return { id, kind: 'settled', charges, cost, tokens, model, identifier, estimated, settledAt };
}

/** The request was not settled: charged at what is known to have been streamed, else at its size. */
export function toUnsettled(
  id: string,
  { charges, model, identifier }: HoldNote,
  cost: Nano,
  settledAt: Millis,
): Entry {
  return { id, kind: 'settled', charges, cost, tokens: NO_TOKENS, model, identifier, estimated: true, settledAt };
}

/** Takes back what was charged in an account's name: its process books its requests itself. */
export function toCorrection({ id, scopeId, window, spent }: AccountCharge, settledAt: Millis): Entry {
  const charges = [{ scopeId, window }];
  return {
    ...{ id, kind: 'correction', charges, cost: -spent, tokens: NO_TOKENS, model: '', identifier: '' },
    ...{ estimated: true, settledAt },
  };
}

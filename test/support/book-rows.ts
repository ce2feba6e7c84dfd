// Ledger rows in a real database without a gateway: each call is the last batch of an account of its own.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Database } from '#adapters/postgres/database.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';

/** Resolves to the ids that PostgreSQL rejected. */
export async function bookLedgerRows(
  database: Pick<Database, 'ledgerDatabase'>,
  instanceUid: string,
  rows: ReadonlyArray<LedgerRow>,
): Promise<{ readonly rejected: ReadonlyArray<string> }> {
  const account = { id: randomUUID(), batch: 1, callNumber: 0 };
  const ledgerDatabase = database.ledgerDatabase(instanceUid, randomBytes);
  const { rejected } = await ledgerDatabase.bookBatch({
    epoch: 0,
    account,
    closesAccount: true,
    storeCalls: 0,
    rows,
  });
  return { rejected };
}

// Records of requests and accounts in the journal, whose disk may refuse them.
import type { Journal, JournalRecord } from '../ports/journal.ts';
import type { LedgerContext } from './context.ts';
import { type FailureContext, guard, logFailure } from './failures.ts';

/** Appends a record. False: the disk refuses it, and the journal is discarded. Never throws. */
export async function append(context: LedgerContext, record: JournalRecord): Promise<boolean> {
  try {
    await context.journal.append(record);
    return true;
  } catch (cause) {
    discard(context, cause);
    return false;
  }
}

/**
 * Discards the journal: the process continues without a disk. The store knows the risk of its requests, and a reply
 * ends when PostgreSQL has its row. A journal that lacks records would take back the charges for them.
 */
function discard(context: LedgerContext, cause: unknown): void {
  const { account, journal } = context;
  if (account.hasNoJournal || account.isStopped) return;
  account.hasNoJournal = true;
  journal.discard();
  logFailure(context, 'disk', cause);
}

/**
 * A journal in which errors of `drop` and `discard` are only logged, since no reply waits for them. A record that
 * stays in the journal is booked by its id, so it is never charged twice.
 */
export const withLoggedErrors = (context: FailureContext, journal: Journal): Journal => ({
  ...journal,
  drop: (ids) => guard(context, 'records', () => journal.drop(ids)),
  discard: () => guard(context, 'records', journal.discard),
});

// Records of requests and accounts in the journal, whose disk may refuse them.
import type { Journal, JournalRecord } from '../ports/journal.ts';
import type { LedgerContext } from './context.ts';
import { guard, type Reporter } from './failures.ts';

/** Appends a record; false: the disk refuses it, and is given up. Never throws. */
export async function append({ journal, journalFailed }: LedgerContext, record: JournalRecord): Promise<boolean> {
  try {
    await journal.append(record);
    return true;
  } catch (cause) {
    journalFailed(cause);
    return false;
  }
}

/**
 * The journal, without errors where nobody waits for an answer: a record that stays is booked again by its id, once.
 */
export const withoutErrors = (reporter: Reporter, journal: Journal): Journal => ({
  ...journal,
  done: (ids) => guard(reporter, 'records', () => journal.done(ids)),
  discard: () => guard(reporter, 'records', journal.discard),
});

// Previous accounts of a process and of its journal: closed, charged and corrected, then finished and dropped
// (LEDGER 3).

import { type Account, addUnreservedRequest } from './account.ts';
import { closeAccount, finishAccount } from './account-closing.ts';
import type { LedgerContext } from './context.ts';
import { toCorrectionRow } from './journal-replay.ts';
import type { EndedRequest } from './requests.ts';

/**
 * Freezes previous accounts in the store, and closes them in PostgreSQL. Returns the accounts whose figures the first
 * calls of the next account must forget; undefined: an account could not be closed, so the next one must not be opened.
 */
export async function closePreviousAccounts(
  context: LedgerContext,
  epoch: number,
  isRebuild: boolean,
): Promise<string[] | undefined> {
  const accountsToForget: string[] = [];
  for (const account of context.account.previousAccounts.keys()) {
    const closing = await closeAccount(context, { epoch, account, isOwn: true, isRebuild });
    if (closing?.outcome === 'epoch') recordStoreEpoch(context.account, epoch, closing.epoch);
    if (closing?.outcome === 'wentBack') context.account.lostEpoch = epoch;
    if (closing?.outcome !== 'closed') return undefined;
    // The store has no such account.
    if (closing.callNumber === undefined) continue;
    if (isRebuild) await finishAccount(context, { epoch, account, isCharged: false });
    // An account that a clean stop closed may have booked more than it reported: the process that closes ended
    // accounts audits it.
    else if (closing.row.isCharged) accountsToForget.push(account);
  }
  return accountsToForget;
}

/** Records that the store is in another epoch than PostgreSQL, so that a new epoch is raised. Always false. */
export function recordStoreEpoch(account: Account, epoch: number, storeEpoch: number): false {
  account.storeEpoch = storeEpoch;
  account.lostEpoch = epoch;
  return false;
}

/** Adds corrections of the charges in the name of previous accounts, since their requests are booked by their ids. */
export async function addCorrections({
  account,
  database,
  intervalClock,
  log,
  instanceUid: instance,
}: LedgerContext): Promise<void> {
  const { previousAccounts } = account;
  if (previousAccounts.size === 0) return;
  const expiredRows = await database.uncorrectedRows([...previousAccounts.keys()]);
  const pendingCorrections = (): EndedRequest[] =>
    account.requests.unbooked().filter(({ row }) => row.kind === 'correction');
  const pendingIds = new Set(pendingCorrections().map(({ row }) => row.id));
  const uncorrected = expiredRows.filter(({ id }) => !pendingIds.has(id));
  for (const expiredRow of uncorrected)
    addUnreservedRequest(account, { row: toCorrectionRow(expiredRow, account.now()), endedAt: intervalClock.now() });
  if (uncorrected.length > 0) {
    const sum = uncorrected.reduce((all, { spent }) => all + spent, 0n);
    const fields = {
      instance,
      accounts: [...previousAccounts.keys()],
      corrections: uncorrected.length,
      sum: `${-sum}`,
    };
    log.info('ledger: charges of previous accounts are corrected, since their requests are booked one by one', fields);
  }
  const corrections = pendingCorrections();
  for (const id of previousAccounts.keys()) previousAccounts.set(id, corrections);
}

/** Drops previous accounts, also from the journal, if their corrections are booked. */
export function dropPreviousAccounts({ account, journal }: LedgerContext): void {
  if (account.previousAccounts.size === 0) return;
  const unbooked = new Set(account.requests.unbooked().map(({ row }) => row));
  for (const [id, corrections] of account.previousAccounts) {
    if (corrections === undefined || corrections.some(({ row }) => unbooked.has(row))) continue;
    account.previousAccounts.delete(id);
    journal.drop([id]);
  }
}

// Earlier accounts of a process and of its journal: closed, charged and corrected, then forgotten (LEDGER 3).

import { type Account, requeue } from './account.ts';
import type { LedgerContext } from './context.ts';
import { toCorrectionRow } from './ledger-rows.ts';
import { closeAccount } from './maintenance.ts';
import type { EndedRequest } from './requests.ts';

/**
 * Closes earlier accounts, in the store and in PostgreSQL; returns those that the store has until the next account's
 * call ends them.
 */
export async function closePreviousAccounts(
  context: LedgerContext,
  epoch: number,
  isRebuild: boolean,
): Promise<string[] | undefined> {
  const ends: string[] = [];
  for (const account of context.account.previousAccounts.keys()) {
    const closed = await closeAccount(context, { epoch, account, isOwn: true, isRebuild });
    if (closed?.outcome === 'epoch') recordStoreEpoch(context.account, epoch, closed.epoch);
    if (closed?.outcome === 'behind') context.account.staleEpoch = epoch;
    if (closed?.outcome !== 'closed') return undefined;
    if (closed.figures === undefined) continue;
    // Charges from before an epoch is open are in the sums that are loaded then.
    if (isRebuild) await context.counterStore.forget(epoch, account, false);
    // One that a clean stop closed has booked more than it told: it is left to an audit by whoever closes ended
    // accounts.
    else if (closed.row.isCharged) ends.push(account);
  }
  return ends;
}

/** The store is in another epoch than PostgreSQL, unless that was raised meanwhile. */
export function recordStoreEpoch(account: Account, epoch: number, storeEpoch: number): false {
  account.storeEpoch = storeEpoch;
  account.staleEpoch = epoch;
  return false;
}

/** Charges in the name of earlier accounts are taken back: their requests are booked by their ids. */
export async function addCorrections({
  account,
  database,
  clock,
  log,
  instanceUid: instance,
}: LedgerContext): Promise<void> {
  const { previousAccounts } = account;
  if (previousAccounts.size === 0) return;
  const charges = await database.charges([...previousAccounts.keys()]);
  const owed = (): EndedRequest[] => account.requests.unbooked().filter(({ row }) => row.kind === 'correction');
  const known = new Set(owed().map(({ row }) => row.id));
  const charged = charges.filter(({ id }) => !known.has(id));
  for (const charge of charged) requeue(account, { row: toCorrectionRow(charge, account.now()), endedAt: clock.now() });
  if (charged.length > 0) {
    const sum = charged.reduce((all, { spent }) => all + spent, 0n);
    const fields = { instance, accounts: [...previousAccounts.keys()], corrections: charged.length, sum: `${-sum}` };
    log.info('charges of earlier accounts are taken back: their requests are booked one by one', fields);
  }
  const corrections = owed();
  for (const id of previousAccounts.keys()) previousAccounts.set(id, corrections);
}

/** The journal forgets earlier accounts whose corrections are booked. */
export function forgetPreviousAccounts({ account, journal }: LedgerContext): void {
  if (account.previousAccounts.size === 0) return;
  const unbooked = new Set(account.requests.unbooked().map(({ row }) => row));
  for (const [id, corrections] of account.previousAccounts) {
    if (corrections === undefined || corrections.some(({ row }) => unbooked.has(row))) continue;
    account.previousAccounts.delete(id);
    journal.done([id]);
  }
}

// Closing of accounts: frozen in the store, charged once in PostgreSQL, forgotten (LEDGER 3).

import type { Accounts } from '../ports/accounts.ts';
import { reasonOf } from '../reason.ts';
import { learnCalls } from './account.ts';
import type { Done } from './account-call.ts';
import { auditCounters } from './audit.ts';
import type { Context, StoreContext } from './context.ts';
import { load } from './loads.ts';

type ToClose = Parameters<Accounts['mark']>[2] & { readonly epoch: number; readonly account: string };

/**
 * Freezes the account in the store, where its absent counters are loaded first, and closes it in PostgreSQL. Throws when store or database are away;
 * may be repeated, by any number of processes.
 */
export async function closeAccount({ accounts, books, store }: StoreContext, { epoch, account, ...how }: ToClose) {
  const known = store.epoch === epoch ? store.calls : 0;
  let marked = await accounts.mark(epoch, account, how);
  if (marked.outcome === 'absent') {
    await load({ accounts, books }, epoch, marked.counters);
    marked = await accounts.mark(epoch, account, how);
  }
  if (!('calls' in marked)) return marked;
  // The store shows fewer calls than it had done before.
  if (marked.calls <= known) return { outcome: 'behind' } as const;
  learnCalls(store, epoch, marked.calls);
  if (marked.outcome === 'none' && !how.isOwn) return marked;
  const { figures, number } = { figures: undefined, number: undefined, ...marked };
  const closed = await books.close({ epoch, account, figures, number, calls: marked.calls, at: marked.now });
  if (closed.outcome === 'epoch') return undefined;
  return closed.outcome === 'closed' ? { ...closed, figures, number } : closed;
}

/** Closes another's account in this epoch, unless its lease lasts. `gone back`: the store has an earlier state of it than PostgreSQL. */
export async function closeEnded(context: StoreContext, epoch: number, account: string): Promise<'gone back' | 'done'> {
  const closed = await closeAccount(context, { epoch, account, isOwn: false, isRebuild: false });
  if (closed?.outcome === 'behind') return 'gone back';
  if (closed?.outcome !== 'closed') return 'done';
  const { row, figures = [], number = 0 } = closed;
  if (number < row.number) return 'gone back';
  // One that closed itself has booked more than it told: its escrow stays until its counters show that.
  if (row.isCharged || (await auditCounters(context, epoch, figures)))
    await context.accounts.finish(epoch, account, row.isCharged);
  return 'done';
}

/** Closes accounts that calls told of, one after the other. */
export function createClosing(context: Context) {
  const { account: own, log } = context;
  const ended = new Set<string>();
  let running: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    for (const account of ended) {
      if (own.isOver) return;
      try {
        if ((await closeEnded(context, own.epoch, account)) === 'gone back') context.leave('behind');
      } catch (error) {
        // The next call tells of it again.
        log.warn('an account could not be closed', { account, why: reasonOf(error) });
      }
      ended.delete(account);
    }
  };

  return {
    close({ ended: told, calls }: Done): void {
      if (told.length === 0 || own.isOver) return;
      // Requests on Workers learn of the same accounts at once: each call closes one, by the number that the store has given it.
      const first = calls % told.length;
      for (const account of context.isolate === undefined ? told : told.slice(first, first + 1)) ended.add(account);
      running ??= run().finally(() => {
        running = undefined;
      });
    },
    /** Resolves when the account at hand is closed, or could not be. */
    stop: async (): Promise<void> => running,
  };
}

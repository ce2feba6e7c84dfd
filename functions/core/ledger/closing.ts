// Closing an account whose lease has ended: frozen in the store, charged once in PostgreSQL, forgotten (LEDGER 3).

import type { Marking } from '../ports/accounts.ts';
import { reasonOf } from '../reason.ts';
import type { Done } from './apply.ts';
import { type AuditDependencies, auditCounters } from './audit.ts';
import type { LedgerDependencies } from './deps.ts';
import { load } from './loads.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export type ClosingDependencies = AuditDependencies &
  Pick<LedgerDependencies, 'accounts' | 'books' | 'timer' | 'log' | 'metrics'>;

/**
 * Closes another's account in this epoch. Undefined: done, or its lease lasts. `gone back`: the store has an earlier state of it than PostgreSQL.
 * Throws when store or database are away; may be repeated, by any number of processes.
 */
export async function closeEnded(
  deps: ClosingDependencies,
  epoch: number,
  account: string,
): Promise<'gone back' | undefined> {
  const { accounts, books, timer } = deps;
  const marked = await mark(deps, epoch, account);
  if (marked.outcome !== 'marked') return undefined;
  const { now: at, figures, number } = marked;
  const closed = await withTimeout(timer, TIMEOUT, 'PostgreSQL', books.close({ epoch, account, figures, number, at }));
  if (closed.outcome === 'epoch') return undefined;
  if (closed.outcome === 'behind' || number < closed.row.number) return 'gone back';
  // One that closed itself has booked more than it told: its escrow stays until its counters show that.
  if (!closed.row.isCharged && (await auditCounters(deps, epoch, figures)) === undefined) return undefined;
  await withTimeout(timer, TIMEOUT, 'the store', accounts.finish(epoch, account, closed.row.isCharged));
  return undefined;
}

/** Marks the account; its absent counters are loaded first. */
async function mark(deps: ClosingDependencies, epoch: number, account: string): Promise<Marking> {
  const { accounts, timer } = deps;
  const ask = (): Promise<Marking> =>
    withTimeout(timer, TIMEOUT, 'the store', accounts.mark(epoch, account, { isOwn: false, isRebuild: false }));
  const marked = await ask();
  if (marked.outcome !== 'absent') return marked;
  await load(deps, epoch, marked.counters);
  return ask();
}

/** Closes accounts that calls told of, one after the other. */
export function createClosing(
  deps: ClosingDependencies &
    Pick<LedgerDependencies, 'isolate'> & { readonly epoch: () => number; readonly onGoneBack: () => void },
) {
  const ended = new Set<string>();
  let running: Promise<void> | undefined;
  let isClosed = false;

  const run = async (): Promise<void> => {
    for (const account of ended) {
      if (isClosed) return;
      try {
        if ((await closeEnded(deps, deps.epoch(), account)) === 'gone back') deps.onGoneBack();
      } catch (error) {
        // The next call tells of it again.
        deps.log.warn('an account could not be closed', { account, why: reasonOf(error) });
      }
      ended.delete(account);
    }
  };

  return {
    close({ ended: told, calls }: Pick<Done, 'ended' | 'calls'>): void {
      if (told.length === 0 || isClosed) return;
      // Requests on Workers learn of the same accounts at once: each call closes one, by the number that the store has given it.
      const own = deps.isolate === undefined ? told : told.slice(calls % told.length).slice(0, 1);
      for (const account of own) ended.add(account);
      running ??= run().finally(() => {
        running = undefined;
      });
    },
    /** Closes no other one; resolves when the present one is closed, or could not be. */
    stop(): Promise<void> {
      isClosed = true;
      return running ?? Promise.resolve();
    },
  };
}

// Closing an account whose lease has ended: frozen in the store, charged once in PostgreSQL, forgotten (LEDGER 3).

import type { Accounts, Marking } from '../ports/accounts.ts';
import { reasonOf } from '../reason.ts';
import type { Done } from './apply.ts';
import { type AuditDependencies, auditCounters } from './audit.ts';
import { type LedgerDependencies, learnCalls, type StoreCount } from './deps.ts';
import { load } from './loads.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export type ClosingDependencies = AuditDependencies & FreezingDependencies;

export interface FreezingDependencies extends Pick<LedgerDependencies, 'accounts' | 'books' | 'timer'> {
  readonly store: StoreCount;
}

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
  const marked = await freeze(deps, epoch, account, { isOwn: false, isRebuild: false });
  if (marked === 'gone back') return marked;
  if (marked.outcome !== 'marked') return undefined;
  const { now: at, figures, number, calls } = marked;
  const closing = books.close({ epoch, account, figures, number, calls, at });
  const closed = await withTimeout(timer, TIMEOUT, 'PostgreSQL', closing);
  if (closed.outcome === 'epoch') return undefined;
  if (closed.outcome === 'behind' || number < closed.row.number) return 'gone back';
  // One that closed itself has booked more than it told: its escrow stays until its counters show that.
  if (!closed.row.isCharged && (await auditCounters(deps, epoch, figures)) === undefined) return undefined;
  await withTimeout(timer, TIMEOUT, 'the store', accounts.finish(epoch, account, closed.row.isCharged));
  return undefined;
}

/** Marks the account; its absent counters are loaded first. `gone back`: the store shows fewer calls than it had done before. */
export async function freeze(
  deps: FreezingDependencies,
  epoch: number,
  account: string,
  how: Parameters<Accounts['mark']>[2],
): Promise<Marking | 'gone back'> {
  const { accounts, timer, store } = deps;
  const known = store.epoch === epoch ? store.calls : 0;
  const mark = () => withTimeout(timer, TIMEOUT, 'the store', accounts.mark(epoch, account, how));
  let marked = await mark();
  if (marked.outcome === 'absent') {
    await load(deps, epoch, marked.counters);
    marked = await mark();
  }
  if (!('calls' in marked)) return marked;
  if (marked.calls <= known) return 'gone back';
  learnCalls(store, epoch, marked.calls);
  return marked;
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

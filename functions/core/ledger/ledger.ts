// The ledger of a gateway: money is held before a request and charged after it, in an account of its process (LEDGER).

import type { Ledger } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import { reasonAndCausesOf } from '../reason.ts';
import { createComponents } from './components.ts';
import type { LedgerDependencies } from './deps.ts';
import { maintain } from './maintain.ts';
import { stop } from './stop.ts';
import { withTimeout } from './timeout.ts';

/** The time limit of a flush and of a stop. */
const GRACE: Millis = 5000;
/** The same of a visit's stop: nothing waits for it, and what it does not book is charged when its lease ends. */
const GRACE_OF_VISIT: Millis = 15_000;

export interface StartableLedger extends Ledger {
  /** Closes the accounts of an earlier process and books its outbox. Requests wait within their deadlines; on failure `start` may be called again. */
  start(): Promise<void>;
  /** Closes accounts that have ended, of all processes, then audits every counter. Called by a sweep. */
  maintain(): Promise<void>;
}

export function createLedger(deps: LedgerDependencies): StartableLedger {
  const { timer, log } = deps;
  const parts = createComponents(deps);
  const { account, membership, holds, ends, booking, waiting } = parts;

  return {
    start: () => membership.start(),
    hold: holds.hold,
    move: parts.move,
    spend: parts.spend,
    progress: ends.progress,
    settle: ends.settle,
    release: ends.release,
    flush: () => withTimeout(timer, GRACE, 'store or database', booking.flush()),
    async maintain() {
      if (!account.isOpen) throw new Error('the store is being rebuilt');
      await maintain({ ...deps, now: account.now, store: account.store, epoch: account.epoch });
    },
    async close() {
      if (parts.phase.isClosed) return;
      parts.phase.isClosed = true;
      // None may be admitted after the account has ended.
      waiting.refuseAll('the ledger stops');
      const grace = deps.isolate === undefined ? GRACE : GRACE_OF_VISIT;
      await withTimeout(timer, grace, 'store or database', stop({ ...deps, ...parts })).catch((error) =>
        log.warn('stopped with unbooked entries; the next start books them', {
          unbooked: booking.size(),
          error: reasonAndCausesOf(error),
        }),
      );
      await parts.close();
    },
  };
}

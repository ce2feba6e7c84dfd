// The components of a ledger, and how they are wired.

import { createAccount } from './account.ts';
import { createBooking } from './booking.ts';
import { createClosing } from './closing.ts';
import { createCover } from './cover.ts';
import type { LedgerDependencies } from './deps.ts';
import { createEnds } from './ends.ts';
import { createHolds } from './holds.ts';
import { createLoads } from './loads.ts';
import { createMembership, type Membership } from './membership.ts';
import { createMove } from './move.ts';
import { createSpend } from './spend.ts';
import { createSync, type Sync } from './sync.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';
import { createWaiting, type Waiting } from './waiting.ts';

export type Components = ReturnType<typeof createComponents>;

export function createComponents(given: LedgerDependencies) {
  const { clock: wall, monotonic: clock = wall } = given;
  const deps = { ...given, clock, wall };
  const account = createAccount(deps, given.isolate);
  const phase = { isClosed: false };
  const waiting: Waiting = createWaiting({
    timer: deps.timer,
    now: deps.clock.now,
    storeNow: account.now,
    heardAt: () => sync.heardAt(),
    isRebuilding: () => membership.isRebuilding(),
    onAsk: () => sync.urgent(),
  });
  const loads = createLoads({ ...deps, account, onLoaded: () => sync.urgent() });
  const closing = createClosing({
    ...deps,
    ...{ now: account.now, store: account.store },
    epoch: () => account.epoch,
    onGoneBack: () => membership.leave('behind'),
  });
  const cover = createCover({ timer: deps.timer, onWait: () => sync.urgent() });
  const sync: Sync = createSync({
    ...{ ...deps, account, waiting, onAbsent: loads.want },
    onDone(pending, reply) {
      holds.answered(pending, reply);
      cover.check();
      booking.gather();
      closing.close(reply);
    },
    onLost: (why) => membership.leave(why),
  });
  const booking = createBooking({
    ...{ ...deps, account, tell: sync.flush, opened: () => membership.opened() },
    onLost: (why) => membership.leave(why),
    onBooked: () => {
      membership.onBooked();
      sync.news();
    },
  });
  const membership: Membership = createMembership({
    ...{ ...deps, account, ask: sync.ask },
    onLeft: sync.reset,
    onOpen: () => {
      cover.check();
      booking.gather();
      sync.urgent();
    },
  });
  const holds = createHolds({ ...deps, account, waiting, sync, booking, phase, membership });
  const ends = createEnds({ ...deps, account, waiting, sync, cover, booking, holds });
  const move = createMove({ ...deps, account, waiting });
  const spend = createSpend({ ...deps, account, sync, membership });
  const cancelBeat = keepBeating(deps, () => {
    ends.beat();
    membership.beat();
    booking.report();
  });
  return {
    ...{ account, phase, membership, holds, ends, move, spend, sync, booking, waiting },
    async close(): Promise<void> {
      cancelBeat();
      for (const part of [loads, sync, booking, waiting]) part.close();
      await withTimeout(deps.timer, TIMEOUT, 'store or database', closing.stop()).catch(() => undefined);
      await membership.close();
    },
  };
}

/** Idle escrow is looked at every quarter of a second. */
const BEAT = 250;

function keepBeating({ timer }: Pick<LedgerDependencies, 'timer'>, work: () => void): () => void {
  let cancel = timer(BEAT, function beat() {
    work();
    cancel = timer(BEAT, beat);
  });
  return () => cancel();
}

// Ends of holds: settled or released, once in the outbox, the store and PostgreSQL; and what streams have produced so far (LEDGER 1, 3, 6).
import type { Hold, Settlement } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import { type Account, change, end, type LiveHold, owe, produce, use } from './account.ts';
import type { Booking } from './booking.ts';
import { type CounterState, idleOf } from './counters.ts';
import type { Cover } from './cover.ts';
import type { LedgerDependencies } from './deps.ts';
import { toSettled, toUnsettled } from './entry.ts';
import type { Holds } from './holds.ts';
import type { Sync } from './sync.ts';
import type { Waiting } from './waiting.ts';

export interface EndDependencies extends LedgerDependencies {
  readonly account: Account;
  readonly waiting: Waiting;
  readonly sync: Sync;
  readonly cover: Cover;
  readonly booking: Booking;
  readonly holds: Pick<Holds, 'freed'>;
}

/** The longest request (upstream.ts enforces this): a hold that is never ended does not keep headroom for longer. */
export const MAX_REQUEST: Millis = 3_600_000;
/** The risk of streams is told, and the lease renewed. */
const SECOND: Millis = 1000;
/** The same of an account that has nothing, and of one that serves a single request. */
const IDLE: Millis = 2000;
const VISIT: Millis = 5000;
/** Labels that come in the same object cost nothing (ports/clock.ts). */
const KINDS = { settled: { kind: 'settled' }, released: { kind: 'released' } };

export function createEnds(deps: EndDependencies) {
  const { account, sync, holds, outbox, clock, metrics, log, isolate } = deps;
  let second = clock.now();
  /** The hold takes nothing any more: its escrow is idle, its place in rates is free. */
  const over = (live: LiveHold): ReadonlyArray<CounterState> => {
    end(account, live);
    return live.counters;
  };

  const settleOnce = (live: LiveHold, settlement: Settlement): Promise<void> => {
    const entry = toSettled(live.id, live.charges, settlement, account.now());
    const written = outbox.append({ type: 'settle', entry });
    const counters = over(live);
    const { cost, tokens } = settlement;
    // A stream is covered by what it was told to have produced.
    const cover = live.isStream && live.risk < cost ? live.risk : cost;
    owe(account, { entry, counters, cover, since: clock.now() });
    endRates(account, live, { requests: 0, tokens: tokens.input + tokens.output });
    holds.freed(counters);
    sync.news();
    metrics.add('gateway_operator_ledger_settles_total', KINDS.settled);
    return durable(deps, written, counters);
  };

  const release = (live: LiveHold, called: boolean): Promise<void> => {
    const written = outbox
      .append({ type: 'release', id: live.id })
      .then(() => outbox.done([live.id]))
      .catch((error) => log.warn('the outbox misses a release', { id: live.id, error: String(error) }));
    const counters = over(live);
    endRates(account, live, { requests: called ? 0 : -1, tokens: called ? undefined : 0 });
    holds.freed(counters);
    sync.news();
    metrics.add('gateway_operator_ledger_settles_total', KINDS.released);
    return written;
  };

  const beatStreams = (): void => {
    const now = clock.now();
    for (const live of [...account.live]) {
      if (now - live.since >= MAX_REQUEST) endLate(live);
      else if (live.known !== undefined) writeProgress(deps, live, live.known());
    }
  };
  /** Its request was never ended, whatever was thrown: charged like one of a process that died. */
  const endLate = (live: LiveHold): void => {
    const { cost, tokens, model, identifier, estimated } = toUnsettled(
      ...([live.id, live, live.known?.() ?? live.amount, account.now()] as const),
    );
    log.warn('a hold was not ended within an hour, and is charged', { id: live.id, cost: `${cost}` });
    void ends.settle(live, { cost, tokens, model, identifier, estimated }).catch(() => undefined);
  };

  const ends = {
    progress(hold: Hold, known: () => bigint, lost?: () => void): void {
      const live = liveOf(hold);
      if (live !== undefined && live.ending === undefined) Object.assign(live, { known, lost });
    },
    settle(hold: Hold, settlement: Settlement): Promise<void> {
      const live = liveOf(hold);
      if (live === undefined || live.ending !== undefined) return live?.ending ?? Promise.resolve();
      const { cost } = settlement;
      if (cost < 0n) return Promise.reject(new Error(`a reply cannot cost ${cost}`));
      if (cost > live.amount) {
        metrics.add('gateway_operator_ledger_overruns_total');
        log.warn('a reply cost more than its hold', { id: live.id, held: `${live.amount}`, cost: `${cost}` });
      }
      live.known = undefined;
      live.ending = settleOnce(live, settlement);
      return live.ending;
    },
    async release(hold: Hold, how?: { readonly called: boolean }): Promise<void> {
      const live = liveOf(hold);
      if (live === undefined || live.ending !== undefined) return live?.ending;
      live.known = undefined;
      live.ending = release(live, how?.called === true);
      return live.ending;
    },
    /** Called every quarter of a second. */
    beat(): void {
      const now = clock.now();
      const isSecond = now - second >= SECOND || now < second;
      if (isSecond) {
        second = now;
        beatStreams();
      }
      let isUsed = account.live.length > 0;
      for (const counter of account.counters.all()) {
        if (isSecond) rotate(counter);
        if (counter.escrow > 0n) isUsed = true;
        if (idleOf(counter) > 0n) change(account, counter);
      }
      if (isSecond) account.counters.prune();
      const every = isolate !== undefined ? VISIT : isUsed ? SECOND : IDLE;
      const hasNews = isolate === undefined && account.changed.size > 0;
      if (hasNews || now - account.sentAt >= every) sync.renew();
    },
  };
  return ends;
}

/** The ledger's own object behind a hold. The caller has only the type of the port; every hold is made in holds.ts. */
export function liveOf(hold: Hold): LiveHold | undefined {
  return 'counters' in hold ? (hold as LiveHold) : undefined;
}

function rotate(counter: CounterState): void {
  counter.quiet += 1;
  counter.lastDemand = counter.demand;
  counter.demand = 0n;
}

/** Resolves when the settlement is on disk, and the store could charge it if the disk were lost. */
async function durable(
  { cover, booking, log }: EndDependencies,
  written: Promise<void>,
  counters: ReadonlyArray<CounterState>,
): Promise<void> {
  try {
    await written;
  } catch (error) {
    log.error('the outbox cannot be written: waiting for PostgreSQL instead', { error: String(error) });
    return booking.flush();
  }
  await cover.wait(counters);
}

function writeProgress({ account, outbox, log }: EndDependencies, live: LiveHold, known: bigint): void {
  produce(account, live, known);
  if (known === live.written) return;
  live.written = known;
  outbox
    .append({ type: 'progress', id: live.id, known })
    .catch((error) => log.warn('the outbox misses progress', { id: live.id, error: String(error) }));
}

/** The true use of its rates. Tokens undefined: as many as were reserved. */
function endRates(
  account: Account,
  { counted }: LiveHold,
  used: { readonly requests: number; readonly tokens: number | undefined },
): void {
  if (counted === undefined) return;
  const { limits, entry, tokens } = counted;
  const change = { requests: used.requests, tokens: (used.tokens ?? tokens) - tokens, parallel: -1 };
  for (const { id } of entry === undefined ? limits : [...limits, entry]) use(account, { id, ...change });
}

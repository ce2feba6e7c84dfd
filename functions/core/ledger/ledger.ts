// The ledger of a gateway: money is held before a request and charged after it (LEDGER).
import type { Hold, HoldRefusal, HoldRequest, Ledger } from '../ports/ledger.ts';
import type { Millis } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import { reasonAndCausesOf } from '../reason.ts';
import { err, ok, type Result } from '../result.ts';
import { auditAll } from './audit.ts';
import { createComponents } from './components.ts';
import type { LedgerDependencies } from './deps.ts';
import { drain } from './drain.ts';
import { keepLeases } from './lease.ts';
import { recover } from './recover.ts';
import { leftOf } from './request-deadline.ts';
import { withTimeout } from './timeout.ts';

/** The time limit of a flush and of a stop. */
const GRACE: Millis = 5000;

export interface StartableLedger extends Ledger {
  /** Books the outbox of an earlier process. Requests wait within their deadlines; on failure they are refused, and `start` may be called again. */
  start(): Promise<void>;
  /** Books every counted charge that is not booked, of all processes, then audits every counter. Called by a sweep. */
  maintain(): Promise<void>;
}

export function createLedger(deps: LedgerDependencies): StartableLedger {
  const { outbox, clock, timer, log } = deps;
  const components = createComponents(deps);
  const { liveHolds, batch, booking, settlements, backlog, heartbeat, membership, hold, move, spend } = components;
  let records: ReadonlyArray<OutboxRecord> | undefined;
  let phase: 'new' | 'open' | 'closed' = 'new';
  let starting: Promise<void> | undefined;
  let stopBeating = (): void => undefined;

  const refusal = (): HoldRefusal | undefined => {
    if (phase !== 'open')
      return { reason: 'unavailable', why: phase === 'new' ? 'the ledger starts' : 'the ledger stops' };
    if (!backlog.isOverLimit()) return undefined;
    return {
      reason: 'unavailable',
      why: 'too many settlements are not booked yet: PostgreSQL or the store is away or slow',
    };
  };

  const open = async (): Promise<void> => {
    records ??= await outbox.recover();
    await heartbeat?.start();
    await recover({ ...deps, ...components }, records);
    records = undefined;
    phase = 'open';
    stopBeating = keepLeases({ liveHolds, batch, outbox, clock, timer, log, onBeat: backlog.report });
  };

  /** A request that wakes a process waits for the start, within its deadline. Returns how long the request has waited in all. */
  const whenStarted = async (waited: Millis = 0): Promise<Result<Millis, HoldRefusal>> => {
    if (phase !== 'new' || starting === undefined) return ok(waited);
    const began = clock.now();
    try {
      await withTimeout(timer, leftOf(waited), 'store or database', starting);
      return ok(waited + clock.now() - began);
    } catch (error) {
      return err({ reason: 'unavailable', why: `the ledger starts: ${reasonAndCausesOf(error)}` });
    }
  };

  const holdNow = (request: HoldRequest): Promise<Result<Hold, HoldRefusal>> => {
    const refused = refusal();
    return refused === undefined ? hold(request) : Promise.resolve(err(refused));
  };

  const flushAll = async (): Promise<void> => {
    await Promise.all([batch.flush(), settlements.counted()]);
    await booking.flush();
  };

  const holdWhenStarted = async (request: HoldRequest): Promise<Result<Hold, HoldRefusal>> => {
    const started = await whenStarted(request.waited);
    return started.ok ? holdNow({ ...request, waited: started.value }) : started;
  };

  return {
    async start() {
      if (phase !== 'new') return;
      starting = open();
      await starting;
    },
    hold: (request) => (phase === 'open' ? holdNow(request) : holdWhenStarted(request)),
    progress({ id }, known, lost) {
      const live = liveHolds.get(id);
      if (live === undefined || live.ending !== undefined) return;
      live.known = known;
      live.lost = lost;
    },
    settle: ({ id }, settlement) => settlements.settle(id, settlement),
    release: ({ id }, how) => settlements.release(id, how),
    move: ({ id }, to) => move(id, to),
    async spend(scopes, waited) {
      const started = await whenStarted(waited);
      return started.ok ? spend(scopes, started.value) : started;
    },
    flush: () => withTimeout(timer, GRACE, 'store or database', flushAll()),
    async maintain() {
      if (!membership.isOpen()) throw new Error('the store is being rebuilt');
      await drain(deps, 0);
      await auditAll(deps, membership.epoch());
    },
    async close() {
      if (phase === 'closed') return;
      phase = 'closed';
      stopBeating();
      await withTimeout(timer, GRACE, 'store or database', flushAll()).catch((error) =>
        log.warn('stopped with unbooked entries; the next start books them', {
          unbooked: booking.size() + settlements.size(),
          error: String(error),
        }),
      );
      await heartbeat?.close();
      batch.close();
      booking.close();
    },
  };
}

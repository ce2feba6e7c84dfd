// Ends of holds: settled or released, once in the outbox, the store and PostgreSQL; and what streams have produced so far (LEDGER 1, 3, 6).

import type { Hold, Settlement } from '../ports/ledger.ts';
import type { Entry } from '../ports/ledger-rows.ts';
import type { Millis, Nano } from '../ports/money.ts';
import { end, type LiveHold, limitsOf, liveOf, owe, produce } from './account.ts';
import type { Booking } from './booking.ts';
import type { Context } from './context.ts';
import { type CounterState, isCovered } from './counters.ts';
import { report } from './failures.ts';
import { append } from './journal-records.ts';
import { toUnsettled } from './ledger-rows.ts';
import { giveBack, type RatesUsed } from './rates.ts';

/** The longest request (upstream.ts enforces this): a hold that is never ended does not keep headroom for longer. */
export const MAX_REQUEST: Millis = 3_600_000;
/** When the store is silent for so long, a reply ends all the same. */
const SILENT: Millis = 2000;
/** Labels that come in the same object cost nothing (ports/clock.ts). */
const KINDS = { settled: { kind: 'settled' }, released: { kind: 'released' } };

/** `freed`: escrow became idle in a counter for which requests wait. */
export function createEnds(context: Context, booking: Booking, freed: (counter: CounterState) => void) {
  const { account, outbox, clock, timer, metrics, log } = context;
  const uncovered = new Set<{ readonly counters: ReadonlyArray<CounterState>; readonly over: () => void }>();

  /** Resolves when the store could charge these if process and disk were lost. Undefined: it can already. */
  const covered = (counters: ReadonlyArray<CounterState>): Promise<void> | undefined => {
    if (counters.every(isCovered)) return undefined;
    return new Promise((resolve) => {
      const over = (): void => {
        uncovered.delete(reply);
        cancel();
        resolve();
      };
      const reply = { counters, over };
      const cancel = timer(SILENT, over);
      uncovered.add(reply);
      context.urgent();
    });
  };

  /** The hold takes nothing any more: its escrow is idle, its place in rates is free. */
  const over = (live: LiveHold, kind: keyof typeof KINDS, used: RatesUsed): void => {
    end(account, live);
    for (const taken of limitsOf(live.counted)) giveBack(account, taken, used);
    for (const counter of live.counters) if (counter.line.size > 0) freed(counter);
    context.news();
    metrics.add('gateway_operator_ledger_settles_total', KINDS[kind]);
  };

  /** Resolves when the settlement is on disk, and the store could charge it if the disk were lost; without a disk, when PostgreSQL has it. */
  const settleOnce = async (live: LiveHold, settlement: Settlement): Promise<void> => {
    const { id, charges, counters } = live;
    const { cost, tokens, model, identifier, estimated } = settlement;
    const settledAt = account.now();
    const entry: Entry = { id, kind: 'settled', charges, cost, tokens, model, identifier, estimated, settledAt };
    // Only a hold whose record is on disk, or cannot be, gives up its escrow: a restart without the record charges its size.
    const isWritten = await append(context, { type: 'settle', entry });
    // A stream is covered by what it was told to have produced.
    const cover = live.isStream && live.risk < cost ? live.risk : cost;
    owe(account, { entry, counters, cover, since: clock.now() });
    over(live, 'settled', { requests: 1, tokens: tokens.input + tokens.output });
    await (isWritten ? covered(counters) : booking.flush());
  };

  const release = async (live: LiveHold, called: boolean): Promise<void> => {
    if (await append(context, { type: 'release', id: live.id })) outbox.done([live.id]);
    over(live, 'released', { requests: called ? 1 : 0, tokens: 0 });
  };

  const ends = {
    /** An answer came: replies whose counters are covered now go on. */
    answered(): void {
      for (const { counters, over } of uncovered) if (counters.every(isCovered)) over();
    },
    progress(hold: Hold, known: () => Nano, lost?: () => void): void {
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
    /** Called every second: streams tell what they have produced, and a request that was never ended is charged like one of a process that died. */
    beat(): void {
      const now = clock.now();
      for (const live of [...account.live]) {
        const known = knownOf(context, live);
        if (now - live.since < MAX_REQUEST) {
          if (known !== undefined) writeProgress(context, live, known);
          continue;
        }
        if (live.ending !== undefined) continue;
        const entry = toUnsettled(live, known ?? live.amount, account.now());
        log.warn('a hold was not ended within an hour, and is charged', { id: live.id, cost: `${entry.cost}` });
        ends.settle(live, entry).catch((error) => report(context, 'charge', error, { id: live.id }));
      }
    },
    /** Resolves when what still lives is charged like the requests of a process that died. */
    async chargeLive(): Promise<void> {
      const now = account.now();
      const charged = account.live.map((live) => {
        if (live.ending === undefined) log.warn('a request had not ended at the stop, and is charged', { id: live.id });
        return ends.settle(live, toUnsettled(live, knownOf(context, live) ?? live.amount, now));
      });
      await Promise.allSettled(charged);
    },
  };
  return ends;
}

/** The reply's cost so far. A request that cannot tell it counts with its whole reservation from then on. */
function knownOf(context: Context, live: LiveHold): Nano | undefined {
  try {
    const known = live.known?.();
    if (known !== undefined && known < 0n) throw new Error(`a reply cannot have cost ${known}`);
    return known;
  } catch (error) {
    report(context, 'cost', error, { id: live.id });
    live.known = () => live.amount;
    return live.amount;
  }
}

function writeProgress(context: Context, live: LiveHold, known: Nano): void {
  produce(context.account, live, known);
  if (known === live.written) return;
  live.written = known;
  void append(context, { type: 'progress', id: live.id, known });
}

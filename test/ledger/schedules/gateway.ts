// A gateway process of the simulation: the real ledger, whose calls to counter store, database and disk the simulation
// delivers.

import { createMemoryJournal, type MemoryFolder } from '#adapters/memory/journal.ts';
import type { DoneReply } from '#core/ledger/account-call.ts';
import { createLedger, type StartableLedger } from '#core/ledger/ledger.ts';
import type { AccountCall, CounterStore } from '#core/ports/counter-store.ts';
import type { JournalRecord } from '#core/ports/journal.ts';
import type { LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { Metrics } from '#core/ports/telemetry.ts';
import { withTimeouts } from '../../doubles/answer-timeouts.ts';
import { createMemoryLog } from '../../doubles/log.ts';
import type { RestorableStore, SharedDatabase } from './parts.ts';
import type { Process, Simulation, Target } from './simulation.ts';

export interface Gateway extends Process {
  readonly ledger: StartableLedger;
  readonly folder: MemoryFolder;
  /** Milliseconds by which its wall clock is ahead. */
  ahead: number;
  isStopping: boolean;
  /** Its disk refuses writes. */
  isFull: boolean;
  /** The member of the next reply to a call at which the process fails. */
  failsAt: ReplyPart | undefined;
  /** Limits of the last request of each scope. */
  readonly limits: Map<string, bigint>;
}

export type ReplyPart = Extract<keyof DoneReply, 'liveAccounts' | 'counters' | 'replies' | 'endedAccounts'>;

export interface SharedParts {
  readonly simulation: Simulation;
  readonly store: RestorableStore;
  readonly database: SharedDatabase;
  readonly nextId: () => string;
  /** The process of each account. */
  readonly owners: Map<string, Process>;
  /** Counter metrics of all processes, by name. */
  readonly metricCounts: Map<string, number>;
}

const RETRY_AFTER = 300;

/** Starts immediately, and retries until it succeeds. */
export function startGateway(shared: SharedParts, name: string, folder: MemoryFolder): Gateway {
  const { simulation, store, database, nextId } = shared;
  const process: Omit<Gateway, 'ledger' | 'folder'> = {
    name,
    isDead: false,
    isFrozen: false,
    ahead: 0,
    isStopping: false,
    isFull: false,
    failsAt: undefined,
    limits: new Map(),
  };
  const timer = simulation.timerOf(process);
  const ledger = createLedger({
    instanceUid: 'instance-1',
    clock: { now: () => simulation.now() + process.ahead },
    timer,
    log: createMemoryLog(),
    intervalClock: { now: simulation.now },
    metrics: countIn(shared.metricCounts),
    ids: { next: nextId },
    processName: name,
    counterStore: withTimeouts(
      timer,
      'the store',
      failingReplies(
        process,
        through(simulation, process, { target: 'store', part: store.counterStore, labelOf: labelOf(shared, process) }),
      ),
    ),
    epochs: withTimeouts(
      timer,
      'PostgreSQL',
      through(simulation, process, { target: 'database', part: database.epochs }),
    ),
    database: withTimeouts(timer, 'PostgreSQL', {
      ...through(simulation, process, { target: 'database', part: database.database, labelOf: labelOfDatabase }),
      scopesOfOtherInstances: async () => new Set<string>(),
    }),
    journal: diskOf(simulation, process, folder),
  });
  const start = (): void => void ledger.start().catch(() => timer(RETRY_AFTER, start));
  start();
  return Object.assign(process, { ledger, folder });
}

/** Replies that the process cannot apply as a whole, because it fails at `failsAt`. */
const failingReplies = (by: Pick<Gateway, 'failsAt'>, counterStore: CounterStore): CounterStore => ({
  ...counterStore,
  async call(call) {
    const reply = await counterStore.call(call);
    const { failsAt } = by;
    if (failsAt === undefined || reply.outcome !== 'done') return reply;
    by.failsAt = undefined;
    const fail = (): never => {
      throw new Error('our own error');
    };
    // Some of the lines have been applied by then.
    if (failsAt === 'counters')
      return {
        ...reply,
        counters: Object.defineProperty([...reply.counters], reply.counters.length >> 1, { get: fail }),
      };
    return Object.defineProperty({ ...reply }, failsAt, { get: fail });
  },
});

interface SimulatedPart<T> {
  readonly target: Target;
  readonly part: T;
  readonly labelOf?: (name: string, args: ReadonlyArray<unknown>) => string;
}

/** Every function of the part as a call that the simulation delivers. */
function through<T extends object>(
  simulation: Simulation,
  by: Process,
  { target, part, labelOf }: SimulatedPart<T>,
): T {
  const simulated = Object.entries(part).map(([name, method]: [string, unknown]) => {
    if (typeof method !== 'function') return [name, method];
    const call = (...args: unknown[]) =>
      simulation.through(by, target, labelOf?.(name, args) ?? name, async () => method.apply(part, args));
    return [name, call];
  });
  return Object.fromEntries(simulated);
}

const tail = (id: string): string => id.slice(-3);

/** The label of a call to the counter store. Records the process of its account. */
const labelOf =
  ({ owners }: SharedParts, by: Process) =>
  (name: string, [first, second]: ReadonlyArray<unknown>): string => {
    if (name !== 'call') return typeof second === 'string' ? `${name} ${tail(second)}` : name;
    const call = first as AccountCall;
    owners.set(call.account, by);
    const changes = call.changes.map(({ scopeId, window, limit, spend, risk, returned, carriedOver, ahead }) => {
      const figures = Object.entries({ spend, risk, returned, carriedOver, ahead }).filter(([, each]) => each !== 0n);
      return ` ${scopeId} ${window.end - Date.UTC(2026, 0, 10)} of ${limit}${figures.map(([what, each]) => ` ${what} ${each}`).join('')};`;
    });
    const requests = call.requests.map(({ counters, amount }) => ` asks ${amount} of ${counters};`);
    const ends = call.accountsToForget.map((id) => ` ends ${tail(id)}`);
    const what = [...changes, ...requests, ...ends].join('');
    return `call ${call.callNumber} of ${tail(call.account)} (batch ${call.batch}, ${call.bookedBatch} booked${call.finishesAccount ? ', last' : ''}):${what}`;
  };

function labelOfDatabase(
  name: string,
  [first]: Parameters<LedgerDatabase['bookBatch']> | ReadonlyArray<unknown>,
): string {
  if (name !== 'bookBatch') return name;
  const { account, rows, closesAccount } = first as Parameters<LedgerDatabase['bookBatch']>[0];
  const of =
    account === undefined ? 'by ids' : `${account.batch} of ${tail(account.id)}${closesAccount ? ', last' : ''}`;
  return `book ${of}: ${rows.map(({ kind, model, cost }) => `${kind} ${model} ${cost}`)}`;
}

const countIn = (metricCounts: Map<string, number>): Metrics => ({
  add: (name, _labels, by = 1) => void metricCounts.set(name, (metricCounts.get(name) ?? 0) + by),
  set: () => undefined,
  observe: () => undefined,
});

function refuse(): never {
  throw new Error('no space left on device');
}

function diskOf(simulation: Simulation, by: Process & Pick<Gateway, 'isFull'>, folder: MemoryFolder) {
  const journal = createMemoryJournal(folder);
  const refusing = { append: async (record: JournalRecord) => (by.isFull ? refuse() : journal.append(record)) };
  return {
    ...through(simulation, by, { target: 'disk', part: refusing }),
    replay: () => journal.replay(),
    drop: (ids: ReadonlyArray<string>) => (by.isDead ? undefined : journal.drop(ids)),
    discard: journal.discard,
    close: journal.close,
  };
}

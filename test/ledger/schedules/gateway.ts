// A gateway process on the stage: the real ledger, whose every call to store, database and disk goes through the stage.

import { createMemoryJournal, type MemoryFolder } from '#adapters/memory/journal.ts';
import type { DoneReply } from '#core/ledger/account-call.ts';
import { createLedger, type StartableLedger } from '#core/ledger/ledger.ts';
import type { AccountCall, CounterStore } from '#core/ports/counter-store.ts';
import type { JournalRecord } from '#core/ports/journal.ts';
import type { LedgerDatabase } from '#core/ports/ledger-database.ts';
import type { Metrics } from '#core/ports/telemetry.ts';
import { withTimeouts } from '../../doubles/answer-timeouts.ts';
import { createMemoryLog } from '../../doubles/log.ts';
import type { ForgetfulStore, SharedDatabase } from './parts.ts';
import type { Process, Stage, Target } from './stage.ts';

export interface Gateway extends Process {
  readonly ledger: StartableLedger;
  readonly folder: MemoryFolder;
  /** Its wall clock is ahead by so much. */
  ahead: number;
  isStopping: boolean;
  /** Its disk refuses writes. */
  isFull: boolean;
  /** It fails where it reads this member of the next answer to a call. */
  failsAt: ReplyPart | undefined;
  /** Limits of the last request of each scope. */
  readonly limits: Map<string, bigint>;
}

export type ReplyPart = Extract<keyof DoneReply, 'liveAccounts' | 'counters' | 'replies' | 'endedAccounts'>;

export interface SharedParts {
  readonly stage: Stage;
  readonly store: ForgetfulStore;
  readonly database: SharedDatabase;
  readonly nextId: () => string;
  /** The process of each account. */
  readonly owners: Map<string, Process>;
  /** Counter metrics of all processes, by name. */
  readonly metricCounts: Map<string, number>;
}

const START_AGAIN = 300;

/** Starts immediately, and retries until it succeeds. */
export function startGateway(shared: SharedParts, name: string, folder: MemoryFolder): Gateway {
  const { stage, store, database, nextId } = shared;
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
  const timer = stage.timerOf(process);
  const ledger = createLedger({
    instanceUid: 'instance-1',
    clock: { now: () => stage.now() + process.ahead },
    timer,
    log: createMemoryLog(),
    intervalClock: { now: stage.now },
    metrics: countIn(shared.metricCounts),
    ids: { next: nextId },
    processName: name,
    counterStore: withTimeouts(
      timer,
      'the store',
      failingReplies(
        process,
        through(stage, process, { target: 'store', part: store.accounts, labelOf: labelOf(shared, process) }),
      ),
    ),
    epochs: withTimeouts(timer, 'PostgreSQL', through(stage, process, { target: 'database', part: database.epochs })),
    database: withTimeouts(timer, 'PostgreSQL', {
      ...through(stage, process, { target: 'database', part: database.database, labelOf: labelOfDatabase }),
      scopesOfOtherInstances: async () => new Set<string>(),
    }),
    journal: diskOf(stage, process, folder),
  });
  const start = (): void => void ledger.start().catch(() => timer(START_AGAIN, start));
  start();
  return Object.assign(process, { ledger, folder });
}

/** Answers that cannot be applied as a whole, where the process fails at them. */
const failingReplies = (by: Pick<Gateway, 'failsAt'>, accounts: CounterStore): CounterStore => ({
  ...accounts,
  async call(call) {
    const reply = await accounts.call(call);
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

interface StagedPart<T> {
  readonly target: Target;
  readonly part: T;
  readonly labelOf?: (name: string, args: ReadonlyArray<unknown>) => string;
}

/** Every function of the part as a call on the stage. */
function through<T extends object>(stage: Stage, by: Process, { target, part, labelOf }: StagedPart<T>): T {
  const staged = Object.entries(part).map(([name, method]: [string, unknown]) => {
    if (typeof method !== 'function') return [name, method];
    const call = (...args: unknown[]) =>
      stage.through(by, target, labelOf?.(name, args) ?? name, async () => method.apply(part, args));
    return [name, call];
  });
  return Object.fromEntries(staged);
}

const tail = (id: string): string => id.slice(-3);

/** Also notes whose account it is. */
const labelOf =
  ({ owners }: SharedParts, by: Process) =>
  (name: string, [first, second]: ReadonlyArray<unknown>): string => {
    if (name !== 'call') return typeof second === 'string' ? `${name} ${tail(second)}` : name;
    const call = first as AccountCall;
    owners.set(call.account, by);
    const changes = call.changes.map(({ scopeId, window, limit, spend, risk, returned, registered, ahead }) => {
      const figures = Object.entries({ spend, risk, returned, registered, ahead }).filter(([, each]) => each !== 0n);
      return ` ${scopeId} ${window.end - Date.UTC(2026, 0, 10)} of ${limit}${figures.map(([what, each]) => ` ${what} ${each}`).join('')};`;
    });
    const requests = call.requests.map(({ counters, amount }) => ` asks ${amount} of ${counters};`);
    const ends = call.previousAccounts.map((id) => ` ends ${tail(id)}`);
    const what = [...changes, ...requests, ...ends].join('');
    return `call ${call.number} of ${tail(call.account)} (batch ${call.batch}, ${call.bookedBatch} booked${call.finishesAccount ? ', last' : ''}):${what}`;
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

function diskOf(stage: Stage, by: Process & Pick<Gateway, 'isFull'>, folder: MemoryFolder) {
  const journal = createMemoryJournal(folder);
  const refusing = { append: async (record: JournalRecord) => (by.isFull ? refuse() : journal.append(record)) };
  return {
    ...through(stage, by, { target: 'disk', part: refusing }),
    replay: () => journal.replay(),
    drop: (ids: ReadonlyArray<string>) => (by.isDead ? undefined : journal.drop(ids)),
    discard: journal.discard,
    close: journal.close,
  };
}

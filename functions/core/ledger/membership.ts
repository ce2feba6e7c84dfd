// Membership of a process in an epoch: its start, its heartbeat, and its way back after it left (LEDGER 6).

import type { AccountCall, AccountReply } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import { reasonOf } from '../reason.ts';
import { type Account, type Loss, owe, unbookedOf } from './account.ts';
import { type LedgerDependencies, learnCalls } from './deps.ts';
import { type JoinProgress, join } from './join.ts';
import { replay } from './replay.ts';
import { TIMEOUT, withTimeout } from './timeout.ts';

export interface MembershipDependencies extends LedgerDependencies {
  readonly account: Account;
  readonly ask: (call: AccountCall) => Promise<AccountReply>;
  readonly onLeft: () => void;
  readonly onOpen: () => void;
}

export interface Membership {
  /** Books what the outbox has, and joins. Throws when PostgreSQL or the store are away; then it goes on by itself, and may be called again. */
  start(): Promise<void>;
  leave(why: Loss): void;
  isRebuilding(): boolean;
  /** Resolves when an epoch is open. */
  opened(): Promise<void>;
  /** Why requests wait. */
  why(): string;
  /** Called every quarter of a second. */
  beat(): void;
  /** Corrections may be booked: then the outbox forgets the accounts they belong to. */
  onBooked(): void;
  close(): Promise<void>;
}

const BEAT_POSTGRES: Millis = 2000;
const TRY_AGAIN: Millis = 200;

export function createMembership(deps: MembershipDependencies): Membership {
  const { account, outbox, epochs, ids, timer, clock, isolate, log } = deps;
  const own: JoinProgress['own'] = new Map();
  const progress: JoinProgress = { joined: 0, lostIn: undefined, storeEpoch: 0, isRebuilding: false, own };
  const process = deps.process ?? ids.next();
  let isRead = false;
  let hasBeaten = false;
  let isClosed = false;
  let beatAt = clock.now();
  let joining: Promise<void> | undefined;
  let why = 'the ledger starts';
  let cancel = (): void => undefined;
  let opening = Promise.withResolvers<void>();

  const joinOnce = async (): Promise<void> => {
    try {
      hasBeaten = true;
      await join({ ...deps, process, progress });
      joining = undefined;
    } catch (error) {
      joining = undefined;
      if (why !== reasonOf(error)) log.warn('the ledger cannot join the epoch', { why: reasonOf(error) });
      why = reasonOf(error);
      if (!isClosed) cancel = timer(TRY_AGAIN, rejoin);
      throw new Error('the ledger cannot join the epoch', { cause: error });
    }
    beatAt = clock.now();
    opened();
    forgetOwn();
    deps.onOpen();
  };
  const rejoin = (): void => {
    cancel();
    joining ??= joinOnce();
    joining.catch(() => undefined);
  };
  const opened = (): void => {
    why = '';
    opening.resolve();
  };

  /** Leftovers of an earlier process: its accounts are closed, its requests booked by their ids. */
  const readOutbox = async (): Promise<void> => {
    const records = await outbox.recover();
    if (isRead) return;
    isRead = true;
    const { accounts, entries, done } = replay(records, account.now());
    for (const id of accounts) own.set(id, undefined);
    for (const entry of entries)
      owe(account, { entry, counters: entry.charges.map(account.counters.of), cover: 0n, since: clock.now() });
    outbox.done(done);
    if (records.length > 0) log.info('recovered the outbox', { entries: entries.length });
  };

  const forgetOwn = (): void => {
    if (own.size === 0) return;
    const unbooked = new Set(unbookedOf(account).map(({ entry }) => entry));
    for (const [id, corrections] of own) {
      if (corrections === undefined || corrections.some(({ entry }) => unbooked.has(entry))) continue;
      own.delete(id);
      outbox.done([id]);
    }
  };

  const beatPostgres = async (): Promise<void> => {
    const { epoch, id } = account;
    try {
      const state = await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.beat(process, progress.joined));
      if (account.id !== id) return;
      if (state.epoch !== epoch || !state.isOpen) membership.leave('epoch');
      else learnCalls(account.store, epoch, state.calls);
    } catch {
      // PostgreSQL is away: bookings report it.
    }
  };

  const membership: Membership = {
    async start() {
      if (account.isOpen) return;
      if (isolate !== undefined && isolate.epoch > 0) {
        Object.assign(account, { id: ids.next(), epoch: isolate.epoch, isOpen: true });
        return opened();
      }
      if (!isRead) await readOutbox();
      rejoin();
      await joining;
    },
    leave(loss) {
      if (!account.isOpen) return;
      account.isOpen = false;
      opening = Promise.withResolvers();
      progress.joined = 0;
      if (loss === 'behind') progress.lostIn = account.epoch;
      progress.isRebuilding = loss !== 'closed';
      if (loss === 'closed') for (const { lost } of account.live) lost?.();
      deps.onLeft();
      rejoin();
    },
    isRebuilding: () => progress.isRebuilding,
    why: () => why,
    async opened() {
      if (!account.isOpen) await opening.promise;
    },
    beat() {
      if (!account.isOpen || isolate !== undefined || clock.now() - beatAt < BEAT_POSTGRES) return;
      beatAt = clock.now();
      void beatPostgres();
    },
    onBooked: forgetOwn,
    async close() {
      isClosed = true;
      cancel();
      if (hasBeaten) await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.leave(process)).catch(() => undefined);
    },
  };
  return membership;
}

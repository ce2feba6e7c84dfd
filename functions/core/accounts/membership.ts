// Membership of a process in an epoch: its start, its heartbeat, and its way back after it left (LEDGER 6).

import { TIMEOUT, withTimeout } from '../ledger/timeout.ts';
import type { AccountCall, AccountReply } from '../ports/accounts.ts';
import type { Millis } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import { reasonOf } from '../reason.ts';
import { type Account, type Ended, owe, unbookedOf } from './account.ts';
import type { LedgerDependencies } from './deps.ts';
import { type JoinProgress, join } from './join.ts';
import { replay } from './replay.ts';

export interface MembershipDependencies extends LedgerDependencies {
  readonly account: Account;
  readonly phase: { readonly isClosed: boolean };
  readonly ask: (call: AccountCall) => Promise<AccountReply>;
  readonly onLeft: () => void;
  readonly onOpen: () => void;
}

/** Why an account is left: closed by another process, or the store is in another epoch, or not what it was. */
export interface Loss {
  readonly storeEpoch?: number | undefined;
  readonly hasGoneBack?: boolean | undefined;
}

export interface Membership {
  /** Books what the outbox has, and joins. Throws when PostgreSQL or the store are away. */
  start(): Promise<void>;
  leave(loss: Loss): void;
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
  const { account, outbox, epochs, ids, timer, clock, isolate, phase, log } = deps;
  const own: JoinProgress['own'] = new Map();
  const progress: JoinProgress = { joined: 0, storeEpoch: 0, hasGoneBack: false, isRebuilding: false, own };
  const process = deps.process ?? ids.next();
  let records: ReadonlyArray<OutboxRecord> | undefined;
  let isRead = false;
  let hasBeaten = false;
  let beatAt = clock.now();
  let joining: Promise<void> | undefined;
  let why = 'the ledger starts';
  let cancel = (): void => undefined;
  let opening = Promise.withResolvers<void>();

  const joinOnce = async (): Promise<void> => {
    hasBeaten = true;
    await join({ ...deps, process, progress });
    why = '';
    forgetOwn();
    beatAt = clock.now();
    opening.resolve();
    if (!phase.isClosed) deps.onOpen();
  };
  const rejoin = (): void => {
    joining ??= joinOnce()
      .catch((error: unknown) => {
        if (why === '') log.warn('the ledger cannot join the epoch', { why: reasonOf(error) });
        why = reasonOf(error);
        if (!phase.isClosed) cancel = timer(TRY_AGAIN, rejoin);
      })
      .finally(() => {
        joining = undefined;
      });
  };

  /** Leftovers of an earlier process: its accounts are closed, its requests booked by their ids. */
  const readOutbox = async (): Promise<void> => {
    records ??= await outbox.recover();
    if (isRead) return;
    isRead = true;
    const { accounts, entries, done } = replay(records, account.now());
    for (const id of accounts) own.set(id, undefined);
    for (const entry of entries)
      owe(account, { entry, counters: entry.charges.map(account.counters.of), cover: 0n, since: clock.now() });
    outbox.done(done);
    if (records.length > 0) log.info('recovered the outbox', { entries: entries.length });
  };

  const openVisit = (): void => {
    Object.assign(account, { id: ids.next(), epoch: account.store.epoch, number: 0, answered: 0, isOpen: true });
    why = '';
    opening.resolve();
  };

  const forgetOwn = (): void => {
    if (own.size === 0) return;
    const unbooked = new Set(unbookedOf(account));
    for (const [id, corrections] of own) {
      if (corrections === undefined || corrections.some((ended: Ended) => unbooked.has(ended))) continue;
      own.delete(id);
      outbox.done([id]);
    }
  };

  const beatPostgres = async (): Promise<void> => {
    const { epoch, id } = account;
    try {
      const state = await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.beat(process, progress.joined));
      if (account.id !== id) return;
      if (state.epoch !== epoch || !state.isOpen) return membership.leave({});
      account.store.calls = Math.max(account.store.calls, state.calls);
    } catch {
      // PostgreSQL is away: bookings report it.
    }
  };

  const membership: Membership = {
    async start() {
      if (account.isOpen || joining !== undefined) return joining;
      if (isolate !== undefined && isolate.epoch > 0) return openVisit();
      await readOutbox();
      rejoin();
      await joining;
      if (!account.isOpen) throw new Error(`the ledger cannot join the epoch: ${why}`);
    },
    leave(loss) {
      if (!account.isOpen) return;
      account.isOpen = false;
      opening = Promise.withResolvers();
      progress.storeEpoch = loss.storeEpoch ?? progress.storeEpoch;
      if (loss.hasGoneBack === true) progress.hasGoneBack = true;
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
      cancel();
      if (hasBeaten) await withTimeout(timer, TIMEOUT, 'PostgreSQL', epochs.leave(process)).catch(() => undefined);
    },
  };
  return membership;
}

// Membership of a process in an epoch: its start, its heartbeat, and its way back after it left (LEDGER 6).

import type { Millis } from '../ports/money.ts';
import type { OutboxRecord } from '../ports/outbox.ts';
import { reasonOf } from '../reason.ts';
import { type Loss, learnCalls, oweAgain } from './account.ts';
import { forgetEarlier } from './booking.ts';
import type { Context } from './context.ts';
import { replay } from './entries.ts';
import { join } from './join.ts';

const TRY_AGAIN: Millis = 200;

export type Membership = ReturnType<typeof createMembership>;

export function createMembership(context: Context, on: { left(): void; open(): void }) {
  const { account, outbox, epochs, ids, process, timer, isolate, log } = context;
  let isRead = false;
  let hasBeaten = false;
  let joining: Promise<void> | undefined;
  let cancel = (): void => undefined;

  const joinOnce = async (): Promise<void> => {
    try {
      hasBeaten = true;
      await join(context);
    } catch (cause) {
      const why = reasonOf(cause);
      if (account.why !== why) log.warn('the ledger cannot join the epoch', { why });
      account.why = why;
      if (!account.isOver) cancel = timer(TRY_AGAIN, rejoin);
      throw new Error('the ledger cannot join the epoch', { cause });
    } finally {
      joining = undefined;
    }
    account.why = '';
    account.opened.resolve();
    forgetEarlier(context);
    on.open();
  };
  const rejoin = (): Promise<void> => {
    cancel();
    joining ??= joinOnce();
    joining.catch(() => undefined);
    return joining;
  };

  const leave = (loss: Loss): void => {
    if (!account.isOpen) return;
    Object.assign(account, { isOpen: false, opened: Promise.withResolvers(), isRebuilding: loss !== 'closed' });
    account.joined = 0;
    if (loss === 'behind') account.lostIn = account.epoch;
    if (loss === 'closed') for (const { lost } of account.live) lost?.();
    on.left();
    rejoin();
  };

  const beatPostgres = async (): Promise<void> => {
    const { epoch, id } = account;
    const state = await epochs.beat(process, account.joined);
    if (account.id !== id) return;
    if (state.epoch !== epoch || !state.isOpen) leave('epoch');
    else learnCalls(account.store, epoch, state.calls);
  };

  return {
    leave,
    /** Books what the outbox has, and joins. Throws when PostgreSQL or the store are away; then it goes on by itself, and may be called again. */
    async start(): Promise<void> {
      if (account.isOpen) return;
      if (isolate !== undefined && isolate.epoch > 0) {
        Object.assign(account, { id: ids.next(), epoch: isolate.epoch, isOpen: true });
        return account.opened.resolve();
      }
      const records = isRead ? [] : await outbox.recover();
      if (!isRead) recover(context, records);
      isRead = true;
      await rejoin();
    },
    /** Called every two seconds. */
    beat(): void {
      if (!account.isOpen || isolate !== undefined) return;
      // While PostgreSQL is away, bookings report it.
      beatPostgres().catch(() => undefined);
    },
    async close(): Promise<void> {
      cancel();
      if (hasBeaten) await epochs.leave(process).catch(() => undefined);
    },
  };
}

/** Leftovers of an earlier process: its accounts are closed, its requests booked by their ids. */
function recover({ account, outbox, clock, log }: Context, records: ReadonlyArray<OutboxRecord>): void {
  const { accounts, entries, done } = replay(records, account.now());
  for (const id of accounts) account.earlier.set(id, undefined);
  for (const entry of entries) oweAgain(account, { entry, since: clock.now() });
  outbox.done(done);
  if (records.length > 0) log.info('recovered the outbox', { entries: entries.length });
}

// The answer to a numbered call: what the account has now, which requests are held, and what may be booked (LEDGER 3).
import type { AccountReply, CounterLine } from '../ports/accounts.ts';
import type { Nano } from '../ports/money.ts';
import { type Account, change } from './account.ts';
import type { Pending } from './compose.ts';
import { type CounterState, idleOf } from './counters.ts';

export type Done = Extract<AccountReply, { outcome: 'done' }>;

/** The call was done. */
export function applyDone(account: Account, { call, counters, waiters }: Pending, reply: Done): void {
  account.answered = call.number;
  // A repeated call does not renew a lease that has ended.
  account.accounts = Math.max(1, reply.accounts);
  counters.forEach((counter, index) => {
    const line = reply.lines[index];
    if (line === undefined) return;
    const { spent, held, escrow, isWanted } = line;
    counter.grantedUnder = grantedUnder(counter, call.lines[index], escrow);
    Object.assign(counter, { spent, held, escrow, isWanted, returning: 0n, sent: 0n, sentUncovered: 0n });
    counter.toldRisk = counter.sentRisk ?? counter.toldRisk;
    counter.sentRisk = undefined;
    if (isWanted && idleOf(counter) > 0n) change(account, counter);
  });
  account.collecting.push(...account.sent);
  account.sent = [];
  // Grants are part of the risk that the store has.
  waiters.forEach((waiter, index) => {
    const answer = reply.asks[index];
    if (answer?.outcome === 'held') for (const counter of waiter.counters) counter.toldRisk += answer.amount;
  });
}

/** A grant is within the limit that its call names, with all escrow that the account had before. */
function grantedUnder(
  { escrow: before, grantedUnder: under }: CounterState,
  line: CounterLine | undefined,
  escrow: Nano,
): Nano | undefined {
  if (line === undefined || line.registered > 0n) return undefined;
  const freed = (line.spend > 0n ? line.spend : 0n) + line.returned;
  return escrow > (freed < before ? before - freed : 0n) ? line.limit : under;
}

/** The call was refused as a whole: all it told goes with the next one. */
export function applyRefused(account: Account, { call, counters }: Pending): void {
  account.answered = call.number;
  for (const counter of counters) {
    counter.untold += counter.sent;
    counter.uncovered += counter.sentUncovered;
    Object.assign(counter, { returning: 0n, sent: 0n, sentUncovered: 0n, sentRisk: undefined });
    change(account, counter);
  }
  account.untold = [...account.sent, ...account.untold];
  account.sent = [];
  for (const { id, requests, tokens, parallel } of call.uses) {
    const later = account.uses.get(id) ?? { requests: 0, tokens: 0, parallel: 0 };
    account.uses.set(id, {
      ...{ id, requests: requests + later.requests },
      ...{ tokens: tokens + later.tokens, parallel: parallel + later.parallel },
    });
  }
}

/** The rest of the limit after spend, holds left out; undefined: not known, or no limit. */
export const leftBySpend = ({ limit, spent, untold, sent }: CounterState): Nano | undefined =>
  limit === undefined || spent === undefined ? undefined : limit - spent - untold - sent;

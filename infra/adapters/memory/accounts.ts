// The accounts of a store in memory, for one process or for tests of several. PostgreSQL and the outbox outlive them.
import type { AccountCall, AccountReply, Accounts, LineState } from '#core/ports/accounts.ts';
import type { Clock } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import { answerAsk, grantAhead, isWanted, liveAccounts, type Step } from './account-asks.ts';
import { audit, mark } from './account-closing.ts';
import * as state from './account-state.ts';

/** A store that is never wiped while its process lives has one epoch. */
export const MEMORY_EPOCH = 1;

export interface MemoryAccountsDependencies {
  readonly clock: Clock;
  /** 0: none yet, as a Redis that is empty. */
  readonly epoch?: number;
}

/** At most so many ended accounts are told in a reply. */
const MAX_ENDED = 16;

/** Every method is one synchronous step, which is what a script is elsewhere. */
export function createMemoryAccounts({ clock, epoch = MEMORY_EPOCH }: MemoryAccountsDependencies): Accounts {
  let life = state.beginLife(epoch);
  let latest: Millis = 0;
  const tick = (): Millis => {
    latest = Math.max(latest, clock.now());
    state.sweep(life, latest);
    return latest;
  };
  return {
    async call(call) {
      const now = tick();
      return call.epoch === life.epoch ? answerCall(life, call, now) : { outcome: 'epoch', now, epoch: life.epoch };
    },
    async load(of, sums) {
      const now = tick();
      if (of === life.epoch) for (const sum of sums) state.load(life, sum, now);
    },
    async read(counters) {
      return counters.map((of) => {
        const counter = state.find(life, of);
        return counter && { spent: counter.spent, held: counter.held };
      });
    },
    async mark(of, id, how) {
      const now = tick();
      return of === life.epoch ? mark(life, id, how, now) : { outcome: 'epoch', now, epoch: life.epoch };
    },
    async finish(of, id, isCharged) {
      const now = tick();
      const account = life.accounts.get(id);
      if (of === life.epoch && account?.isMarked !== false) state.close(life, id, isCharged, now);
    },
    async accounts(isEnded, max) {
      const now = tick();
      const unfinished = [...life.accounts.values()].filter(({ isFinished }) => !isFinished);
      const chosen = unfinished.filter(({ until }) => !isEnded || until <= now).sort((a, b) => a.until - b.until);
      return chosen.slice(0, max).map((account) => {
        const batches = state.figuresOf(account).flatMap(({ unbooked }) => unbooked.map(({ batch }) => batch));
        return { account: account.id, number: account.number, unbooked: Math.max(0, ...batches) };
      });
    },
    async loaded(from, max) {
      const rest = [...life.counters.values()].filter(({ serial }) => serial >= Number(from));
      const counters = rest.slice(0, max).map(({ scopeId, window }) => ({ scopeId, window }));
      const next = rest[max]?.serial;
      return next === undefined ? { counters } : { counters, next: `${next}` };
    },
    async audit(of, sums, rows, deadline) {
      const now = tick();
      if (of !== life.epoch) return { outcome: 'epoch', now, epoch: life.epoch };
      return { outcome: 'done', now, ...(now > deadline ? { differences: [], moved: [] } : audit(life, sums, rows)) };
    },
    async begin(wanted) {
      if (life.epoch < wanted) life = state.beginLife(wanted);
      return life.epoch;
    },
    async clear() {
      life = state.beginLife(0);
    },
  };
}

function answerCall(life: state.Life, call: AccountCall, now: Millis): AccountReply {
  const { number } = call;
  const known = life.accounts.get(call.account);
  const last = known?.number ?? 0;
  const isRepeated = known !== undefined && !known.isMarked && number === last;
  // A first call that is late opens no account.
  const isClosed = known === undefined ? number === 1 && now > call.deadline : known.isMarked || known.isFinished;
  if (!isRepeated && (isClosed || number <= last)) return { outcome: 'stale', why: 'closed', now, calls: life.calls };
  if (!isRepeated && number !== last + 1) return { outcome: 'stale', why: 'behind', now, calls: life.calls };
  const step = { life, account: known ?? state.open(life, call.account), now };
  if (!isRepeated) perform(step, call);
  const { account } = step;
  const head = { now, calls: life.calls };
  if (account.outcome.outcome !== 'done') return { ...account.outcome, ...head };
  const ended = [...life.accounts.values()].filter(({ isFinished, until }) => !isFinished && until <= now);
  const others = ended.flatMap(({ id }) => (id === account.id ? [] : [id])).slice(0, MAX_ENDED);
  const lines = call.lines.map((line): LineState => {
    const counter = state.find(life, line);
    const { spent, held } = counter ?? { spent: 0n, held: 0n };
    const isWantedHere = counter !== undefined && isWanted(counter, now, account.id);
    return { spent, held, escrow: state.figuresIn(account, line).escrow, isWanted: isWantedHere };
  });
  return { ...account.outcome, ...head, accounts: liveAccounts(step), lines, ended: others };
}

/** A numbered call, once. */
function perform(step: Step, call: AccountCall): void {
  const { life, account, now } = step;
  life.calls += 1;
  Object.assign(account, { number: call.number, until: now + call.lease });
  account.outcome = whyNothing(life, call, now) ?? { outcome: 'done', asks: [] };
  if (account.outcome.outcome !== 'done') return;
  account.booked = Math.max(account.booked, call.booked);
  state.settle(life, account, call);
  for (const id of call.ends) state.close(life, id, true, now);
  for (const use of call.uses) life.rates.use(use, now, account.inFlight);
  const isLate = now > call.deadline;
  const asks = call.asks.map((ask) => (isLate ? { outcome: 'late' as const } : answerAsk(step, call, ask)));
  account.outcome = { outcome: 'done', asks };
  if (!isLate) grantAhead(step, call, asks);
  if (call.isLast) state.forget(life, account, false, now);
}

/** The reason why a call is not done. */
function whyNothing(life: state.Life, { lines, asks }: AccountCall, now: Millis): state.Outcome | undefined {
  const asked = new Set(asks.flatMap((ask) => ask.lines));
  const isAsked = (index: number): boolean => asked.has(index) || (lines[index]?.ahead ?? 0n) > 0n;
  const absent = lines.flatMap((line, index) =>
    (line.spend !== 0n || isAsked(index)) && state.find(life, line) === undefined ? [index] : [],
  );
  if (absent.length > 0) return { outcome: 'absent', absent };
  const isOver = lines.some(({ window }, index) => isAsked(index) && (now < window.start || window.end <= now));
  return isOver ? { outcome: 'window' } : undefined;
}

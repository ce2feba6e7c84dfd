// A model of accounts that is too simple to be wrong: what each has in each counter, summed for every question.
import * as fc from 'fast-check';
import type { AccountCall, AccountFigures, ReservationReply, ReservationRequest } from '../counter-store.ts';
import type { Millis, Nano } from '../money.ts';
import { changeOf, type LimitedCounter, requestOf } from './counter-store.scenario.promises.ts';

/** One step of a random history of three processes and three counters. Shares are thousandths. */
export interface Event {
  readonly kind: 'call' | 'repeat' | 'rejoin' | 'close';
  readonly by: number;
  readonly advance: Millis;
  /** Of the escrow: spent, and of what remains: returned; and of what remains: at risk. One of each per counter. */
  readonly spend: ReadonlyArray<number>;
  readonly returned: ReadonlyArray<number>;
  readonly risk: ReadonlyArray<number>;
  /** Of the limit. */
  readonly ahead: ReadonlyArray<number>;
  readonly requests: ReadonlyArray<{
    readonly changes: ReadonlyArray<number>;
    readonly amount: number;
    readonly min: number;
  }>;
  readonly isCorrection: boolean;
  readonly isLate: boolean;
  readonly isNextBatch: boolean;
}

const shares = (...of: number[]) => fc.tuple(...Array.from({ length: 3 }, () => fc.constantFrom(...of)));

/** `advance`: the time between two events. */
export const eventOf = (...advance: Millis[]): fc.Arbitrary<Event> =>
  fc.record({
    kind: fc.constantFrom('call', 'call', 'call', 'call', 'call', 'call', 'repeat', 'rejoin', 'close'),
    by: fc.nat(2),
    advance: fc.constantFrom(...advance),
    spend: shares(0, 300, 1000),
    returned: shares(0, 0, 500, 1000),
    risk: shares(0, 500, 1000),
    ahead: shares(0, 0, 1, 10, 25),
    requests: fc.array(
      fc.record({ changes: fc.subarray([0, 1, 2]), amount: fc.nat(700), min: fc.constantFrom(0, 500, 1000) }),
      { maxLength: 4 },
    ),
    isCorrection: fc.nat(9).map((of) => of === 0),
    isLate: fc.nat(9).map((of) => of === 0),
    isNextBatch: fc.boolean(),
  });

interface ModelAccount {
  readonly id: string;
  readonly escrow: Nano[];
  readonly risk: Nano[];
  unbookedSpend: { readonly batch: number; readonly counter: number; readonly spend: Nano }[];
  batch: number;
  replies: ReservationReply[];
}

/** The members of a call that the model uses. */
type ModelCall = Pick<AccountCall, 'account' | 'changes' | 'requests' | 'batch' | 'bookedBatch' | 'deadline'>;

const COUNTERS = [0, 1, 2];
const at = (sums: ReadonlyArray<Nano>, index: number): Nano => sums[index] ?? 0n;
const part = (of: Nano, share: number | undefined): Nano => (of * BigInt(share ?? 0)) / 1000n;

export function modelAccounts(limit: Nano) {
  const accounts: ModelAccount[] = [];
  const spent: Nano[] = [0n, 0n, 0n];
  const wanted: { readonly id: string; readonly counter: number; readonly until: Millis }[] = [];

  const escrowIn = (counter: number): Nano => accounts.reduce((sum, { escrow }) => sum + at(escrow, counter), 0n);
  const leftIn = (counter: number): Nano => limit - at(spent, counter) - escrowIn(counter);
  const isWantedByOthers = (counter: number, now: Millis, except = ''): boolean =>
    wanted.some((one) => one.counter === counter && one.until > now && one.id !== except);
  const find = (id: string): ModelAccount => {
    const existing = accounts.find((one) => one.id === id);
    if (existing !== undefined) return existing;
    const newAccount = { id, escrow: [0n, 0n, 0n], risk: [0n, 0n, 0n], unbookedSpend: [], batch: 1, replies: [] };
    accounts.push(newAccount);
    return newAccount;
  };

  const replyTo = (
    account: ModelAccount,
    { counters, amount: requestedAmount, minAmount }: ReservationRequest,
    now: Millis,
  ): ReservationReply => {
    const exceeded = counters.findIndex((of) => at(spent, of) >= limit || limit - at(spent, of) < minAmount);
    const spentThere = at(spent, counters[exceeded] ?? -1);
    if (exceeded >= 0) return { outcome: 'exceeded', counter: exceeded, spent: spentThere };
    const amount = counters.reduce(
      (min, of) => (limit - at(spent, of) < min ? limit - at(spent, of) : min),
      requestedAmount,
    );
    const held = counters.findIndex((of) => amount > 0n && leftIn(of) < amount);
    for (const of of counters)
      if (amount > 0n && leftIn(of) < amount) wanted.push({ id: account.id, counter: of, until: now + 1000 });
    if (held >= 0) return { outcome: 'held', counter: held };
    for (const of of counters) {
      account.escrow[of] = at(account.escrow, of) + amount;
      account.risk[of] = at(account.risk, of) + amount;
    }
    return { outcome: 'reserved', amount };
  };

  const grant = (account: ModelAccount, { changes, requests }: ModelCall, now: Millis): void => {
    for (const of of COUNTERS) {
      const ahead = changes[of]?.ahead ?? 0n;
      const refused = requests.some(
        (one, index) => one.counters.includes(of) && account.replies[index]?.outcome !== 'reserved',
      );
      if (refused || isWantedByOthers(of, now) || 16n * BigInt(accounts.length) * ahead > leftIn(of)) continue;
      account.escrow[of] = at(account.escrow, of) + ahead;
    }
  };

  return {
    /** The content of a call that keeps to the port: it spends and returns its escrow, or takes spend back. */
    toPart(
      id: string,
      event: Event,
      counters: ReadonlyArray<LimitedCounter>,
    ): Pick<AccountCall, 'changes' | 'requests' | 'batch' | 'bookedBatch'> {
      const { escrow, batch } = find(id);
      const changes = counters.map((of, index) => {
        const own = at(escrow, index);
        const spend = event.isCorrection ? -part(at(spent, index), 100) : part(own, event.spend[index]);
        const remaining = spend > 0n ? own - spend : own;
        const returned = part(remaining, event.returned[index]);
        const risk = part(remaining - returned, event.risk[index]);
        return changeOf(of, { spend, returned, risk, ahead: part(limit, event.ahead[index]) });
      });
      const requests = event.requests.map((one) => {
        const amount = part(limit, one.amount);
        return requestOf(amount, { counters: one.changes, minAmount: part(amount, one.min) });
      });
      const current = event.isNextBatch ? batch + 1 : batch;
      return { changes, requests, batch: current, bookedBatch: Math.max(0, current - 2) };
    },

    /** The answers to a call that is done. */
    call(call: ModelCall, now: Millis): ReservationReply[] {
      const account = find(call.account);
      account.batch = call.batch;
      account.unbookedSpend = account.unbookedSpend.filter(({ batch }) => batch > call.bookedBatch);
      for (const [of, { spend, returned, risk }] of call.changes.entries()) {
        spent[of] = at(spent, of) + spend;
        account.escrow[of] = at(account.escrow, of) - (spend > 0n ? spend : 0n) - returned;
        account.risk[of] = risk;
        if (spend !== 0n) account.unbookedSpend.push({ batch: call.batch, counter: of, spend });
      }
      account.replies = call.requests.map((one) =>
        now > call.deadline ? { outcome: 'late' } : replyTo(account, one, now),
      );
      if (now <= call.deadline) grant(account, call, now);
      return account.replies;
    },

    /** The account is charged its risk, and finished. */
    charge(id: string): void {
      for (const of of COUNTERS) spent[of] = at(spent, of) + at(find(id).risk, of);
      accounts.splice(accounts.indexOf(find(id)), 1);
    },

    /** The account is charged and finished; the next one of its process registers the risk, and corrects the charge. */
    replace(id: string, next: string): void {
      const { risk } = find(id);
      accounts.splice(accounts.indexOf(find(id)), 1);
      const unbookedSpend = COUNTERS.map((of) => ({ batch: 1, counter: of, spend: -at(risk, of) }));
      Object.assign(find(next), { escrow: [...risk], risk: [...risk], unbookedSpend });
    },

    isOpen: (id: string): boolean => accounts.some((one) => one.id === id),
    risksOf: (id: string): ReadonlyArray<Nano> => find(id).risk,
    repliesOf: (id: string, now: Millis) =>
      COUNTERS.map((of) => ({
        spent: at(spent, of),
        escrowOfAll: escrowIn(of),
        escrow: at(find(id).escrow, of),
        isWantedByOthers: isWantedByOthers(of, now, id),
      })),
    /** Figures of a frozen account by scope: escrow, risk and the batches of its unbooked spend. */
    figuresOf(id: string) {
      const { escrow, risk, unbookedSpend } = find(id);
      const figures = COUNTERS.map((of) => {
        const ofCounter = unbookedSpend.filter(({ counter }) => counter === of);
        const batches = [...new Set(ofCounter.map(({ batch }) => batch))].map((batch) => ({
          batch,
          spend: ofCounter.reduce((sum, one) => (one.batch === batch ? sum + one.spend : sum), 0n),
        }));
        return { scopeId: scopeOf(of), escrow: at(escrow, of), risk: at(risk, of), unbookedSpend: batches };
      });
      return toComparable(figures);
    },

    counters: (): (readonly [Nano, Nano])[] => COUNTERS.map((of) => [at(spent, of), escrowIn(of)] as const),
    isWithinLimits: (): boolean => COUNTERS.every((of) => leftIn(of) >= 0n),
  };
}

export const scopeOf = (index: number): string => `scope ${index}`;

type Comparable = Pick<AccountFigures, 'scopeId' | 'escrow' | 'risk' | 'unbookedSpend'>;

/** By scope, without batches and counters that have nothing: a store may keep them or not. */
export const toComparable = (figures: ReadonlyArray<Comparable>) =>
  new Map(
    figures.flatMap(({ scopeId, escrow, risk, unbookedSpend }) => {
      const batches = unbookedSpend.filter(({ spend }) => spend !== 0n);
      const isEmpty = escrow === 0n && risk === 0n && batches.length === 0;
      return isEmpty ? [] : [[scopeId, { escrow, risk, unbookedSpend: batches }] as const];
    }),
  );

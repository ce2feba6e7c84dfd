// The scenario of the counter store's promises: counters with a window of two hours, and processes that number their
// calls.
import type {
  AccountCall,
  AccountFigures,
  AccountReply,
  CounterChange,
  CounterReply,
  CounterStore,
  FiguresReply,
  ReservationReply,
  ReservationRequest,
} from '../counter-store.ts';
import type { Millis, Nano } from '../money.ts';
import type { ScopeWindow } from '../policy.ts';

export interface AccountsUnderTest {
  /** An empty store, in `epoch`. */
  readonly store: CounterStore;
  readonly epoch: number;
  readonly now: () => Millis;
  /** Advances the store's clock: by at most two seconds, unless the test needs a manual clock. */
  readonly advance: (millis: Millis) => Promise<void>;
}

export interface LimitedCounter extends ScopeWindow {
  readonly limit?: Nano | undefined;
}

export type DoneReply = Extract<AccountReply, { outcome: 'done' }>;

/** A process with one account. Its calls have `batch` 1, and contain only what the test passes. */
export interface Process {
  readonly account: string;
  /** Sends the next call. */
  send(part?: Partial<AccountCall>): Promise<AccountReply>;
  /** Sends the last call again. */
  repeat(): Promise<AccountReply>;
  /** Sends the next call, which must be done. */
  call(part?: Partial<AccountCall>): Promise<DoneReply>;
  /** Sends the next call with a change of one counter; returns that counter. */
  report(counter: LimitedCounter, part: Partial<CounterChange>, more?: Partial<AccountCall>): Promise<CounterReply>;
  /** Sends the next call with a request for an amount from all of these counters. */
  reservation(amount: Nano, ...counters: LimitedCounter[]): Promise<ReservationReply>;
}

export const HOUR: Millis = 3_600_000;
/** A lease that ends within a test. */
export const LEASE: Millis = 400;

/** A change of a counter in a call: zeros, except `part`. */
export const changeOf = (counter: LimitedCounter, part: Partial<CounterChange> = {}): CounterChange => ({
  scopeId: counter.scopeId,
  window: counter.window,
  limit: counter.limit,
  spend: 0n,
  risk: 0n,
  returned: 0n,
  carriedOver: 0n,
  ahead: 0n,
  ...part,
});

/** A request for exactly this amount from the first counter of the call. */
export const requestOf = (amount: Nano, part: Partial<ReservationRequest> = {}): ReservationRequest => ({
  counters: [0],
  amount,
  minAmount: amount,
  ...part,
});

/** `under` is called for each operation: a test may make another store. */
export function accountsScenario(under: () => AccountsUnderTest) {
  let idCount = 0;

  const nextId = (): string => `00000000-0000-4000-8000-${String(idCount++).padStart(12, '0')}`;

  const counter = (scopeId: string, limit?: Nano): LimitedCounter => {
    const now = under().now();
    return { scopeId, limit, window: { start: now - HOUR, end: now + HOUR } };
  };

  /** A counter with this limit that is loaded with this sum. */
  const loadCounter = async (scopeId: string, limit?: Nano, spent: Nano = 0n): Promise<LimitedCounter> => {
    const of = counter(scopeId, limit);
    await under().store.load(under().epoch, [{ scopeId, window: of.window, spent }]);
    return of;
  };

  const start = (lease: Millis = HOUR): Process => {
    const account = nextId();
    let last: AccountCall | undefined;
    const send = (part: Partial<AccountCall> = {}): Promise<AccountReply> => {
      const { store, epoch, now } = under();
      const nothing = { changes: [], requests: [], rateChanges: [], accountsToForget: [], finishesAccount: false };
      const callNumber = (last?.callNumber ?? 0) + 1;
      last = {
        epoch,
        account,
        callNumber,
        lease,
        deadline: now() + HOUR,
        batch: 1,
        bookedBatch: 0,
        ...nothing,
        ...part,
      };
      return store.call(last);
    };
    const call = async (part?: Partial<AccountCall>): Promise<DoneReply> => {
      const reply = await send(part);
      if (reply.outcome !== 'done') throw new Error(`the call is answered with ${reply.outcome}`);
      return reply;
    };
    return {
      account,
      send,
      call,
      async repeat() {
        if (last === undefined) throw new Error('there is no call to repeat');
        return under().store.call(last);
      },
      async report(of, part, more = {}) {
        const [state] = (await call({ changes: [changeOf(of, part)], ...more })).counters;
        if (state === undefined) throw new Error('the call has no reply for the counter');
        return state;
      },
      async reservation(amount, ...counters) {
        const changes = counters.map((of) => changeOf(of));
        const [result] = (await call({ changes, requests: [requestOf(amount, { counters: [...counters.keys()] })] }))
          .replies;
        if (result === undefined) throw new Error('the call has no reply for the request');
        return result;
      },
    };
  };

  /** Spend and escrow of these counters. */
  const read = async (...counters: ScopeWindow[]): Promise<ReadonlyArray<readonly [Nano, Nano] | undefined>> =>
    (await under().store.read(counters)).map((one) => one && [one.spent, one.escrowOfAll]);

  /** Pages of the figures of a frozen account, from the first one on. */
  const pagesOf = async (account: string) => {
    const { store, epoch } = under();
    const pages: Extract<FiguresReply, { outcome: 'page' }>[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await store.figures(epoch, account, cursor);
      if (page.outcome !== 'page') return pages;
      pages.push(page);
      cursor = page.next;
      if (cursor === undefined) return pages;
    }
  };

  /** Freezes an account; returns its figures with the reply, those that are not zero. */
  const freeze = async (account: string, isOwn = true) => {
    const reply = await under().store.freeze(under().epoch, account, isOwn);
    if (reply.outcome !== 'frozen') return reply;
    const figures = (await pagesOf(account)).flatMap((page) => page.figures);
    const hasAnything = ({ escrow, risk, unbookedSpend }: AccountFigures): boolean =>
      escrow !== 0n || risk !== 0n || unbookedSpend.length > 0;
    return { ...reply, figures: figures.filter(hasAnything) };
  };

  /** Forgets a frozen account, page by page; or an unknown account. */
  const forget = async (account: string, isCharged: boolean): Promise<void> => {
    const pages = (await pagesOf(account)).map((page) => page.figures);
    const { store, epoch } = under();
    for (const figures of [...pages, []]) await store.forget(epoch, account, isCharged, figures);
  };

  return { nextId, counter, loadCounter, start, read, freeze, forget, pagesOf };
}

import { afterAll, beforeAll, expect, test } from 'vitest';
import type {
  AccountCall,
  AccountRow,
  CounterChange,
  CounterStore,
  RateChange,
  ReservationRequest,
} from '#core/ports/counter-store.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ScopeWindow } from '#core/ports/policy.ts';
import { isEstimated, perEstimatedRate, perWindowedRate } from '#core/ports/rates.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { random } from '../../../../test/support/random.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../../../../test/support/redis.ts';
import { underClock } from '../../../../test/support/redis-clock.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { createMemoryCounterStore } from '../../memory/counter-store.ts';
import { createRedisCounterStore } from '../counter-store.ts';
import { openRedis, type RedisConnection } from '../tcp.ts';

const SEEDS = [1, 2, 3, 4];
const [RUNS, STEPS] = [25, 40];
const HOUR: Millis = 3_600_000;
/** Both stores clean up after a pause of this length; after shorter pauses, each cleans up at times of its own. */
const PAUSE: Millis = 45_000;
const SIZES = [0n, 0n, 0n, 1n, 7n, 7n, 30n, 10n ** 13n + 1n, 2n ** 53n + 1n];
const LIMITS = [undefined, 50n, 100n, 100n, 2n ** 54n];
const ACCOUNTS = [0, 1, 2];
const RATES = [
  { id: 'one', requests: 3, tokens: 40 },
  { id: 'two', requests: 6, parallel: 2 },
  { ...perWindowedRate(() => 100), id: 'three', parallel: 3 },
];

describeUnless(whyNoRedis(), 'Redis and memory', () => {
  let server: TestRedis;
  let redis: RedisConnection;
  beforeAll(async () => {
    server = await startRedis();
    redis = openRedis(server.connection, { log: createMemoryLog() });
  });
  afterAll(async () => {
    await redis?.close();
    await server?.stop();
  });

  test.each(SEEDS)('answer alike, after any calls, loads, marks, audits and pauses in any order (%s)', async (seed) => {
    const draw = random(seed);
    const pick: Pick = (...of) => {
      const picked = of[Math.floor(draw() * of.length)];
      // Not undefined but where `of` has it.
      return picked as (typeof of)[number];
    };
    for (let run = 0; run < RUNS; run += 1) {
      const { clock, advance } = createManualTime();
      const evaluate = underClock(redis.evaluate, clock.now);
      const memory = createMemoryCounterStore({ clock, epoch: 0 });
      const stored = createRedisCounterStore({ evaluate, instanceUid: `${seed} ${run}` });
      const both = async (step: (store: CounterStore) => Promise<unknown>): Promise<unknown> => {
        const [one, other] = await Promise.all([memory, stored].map(step));
        expect(toComparable(other), `run ${run}`).toEqual(toComparable(one));
        return one;
      };
      const scenario = createScenario(pick, clock.now);
      await both((store) => store.begin(1, true));
      const sums = scenario.sums().slice(0, 3);
      await both((store) => store.load(1, sums));
      for (let at = 0; at < STEPS; at += 1) {
        const pause = pick(0, 0, 0, 0, 0, 0, 0, 0, 1, 400, 999, 1000, PAUSE, HOUR);
        if (pause > 0) await advance(pause);
        const { step, learn } = scenario.next();
        learn(await both(step));
        await both(scenario.look);
      }
    }
  });
});

type Pick = <T>(...of: T[]) => T;

/** Three processes, and four counters: the window of the last one ends soon. */
function createScenario(pick: Pick, now: () => Millis) {
  const start = now();
  const counters: ReadonlyArray<ScopeWindow> = [0, 1, 2, 3].map((of) => ({
    scopeId: `scope ${of}`,
    window: { start: start - HOUR, end: start + (of === 3 ? 30_000 : 1000 * HOUR) },
  }));
  const processes = ACCOUNTS.map((of) => ({
    name: `process-${of}`,
    starts: 0,
    number: 0,
    last: undefined as AccountCall | undefined,
  }));
  let batch = 1;
  const some = <T>(list: ReadonlyArray<T>): T[] => list.filter(() => pick(true, false));
  const idOf = ({ name, starts }: (typeof processes)[number]): string => `${name}-${starts}`;
  const size = (): bigint => pick(...SIZES);
  const sums = () => counters.map((counter) => ({ ...counter, spent: pick(0n, 0n, 7n, 30n, 2n ** 53n) }));

  const line = (counter: ScopeWindow): CounterChange => ({
    ...counter,
    limit: pick(...LIMITS),
    spend: pick(1n, 1n, 1n, -1n) * size(),
    risk: size(),
    returned: size(),
    carriedOver: pick(0n, 0n, 0n, 5n),
    ahead: pick(0n, 0n, 1n, 3n),
    sum: pick(undefined, undefined, 0n, 30n, 2n ** 53n),
    laterSpend: pick([], [], [], [1, 2]).map((by) => ({ batch: batch + by, spend: pick(1n, -1n) * size() })),
  });
  const ask = (lines: ReadonlyArray<unknown>): ReservationRequest => ({
    counters: some([...lines.keys()]),
    amount: size(),
    minAmount: size(),
    ...(pick(true, false)
      ? {}
      : {
          rates: {
            ...perEstimatedRate(() => pick(0, 9, 60)),
            limits: some(RATES),
            modelEntryLimits: some([...RATES.slice(1), undefined]),
          },
        }),
  });
  const minute = (): number => Math.floor(now() / 60_000);
  const use = ({ id }: { id: string }): RateChange => ({
    id,
    minute: pick(undefined, minute(), minute() - 1, minute() - 2),
    ...perWindowedRate((kind) => (isEstimated(kind) ? pick(-9, 0, 30) : pick(0, -1))),
    parallel: pick(0, -1, 1),
  });

  const call = () => {
    const process = pick(...processes);
    batch += pick(0, 0, 1);
    const lines = some(counters.slice(0, pick(3, 3, 3, 4))).map(line);
    const others = processes.filter((one) => one !== process).map(idOf);
    const fresh: AccountCall = {
      epoch: pick(1, 1, 1, 1, 1, 1, 1, 2),
      account: idOf(process),
      callNumber: process.number + pick(1, 1, 1, 1, 1, 1, 2),
      changes: lines,
      lease: pick(900, 20_000, HOUR),
      deadline: now() + pick(1000, 1000, 1000, 1000, -1),
      batch,
      bookedBatch: Math.max(0, batch - pick(1, 2)),
      requests: some([1, 2, 3]).map(() => ask(lines)),
      rateChanges: some(RATES).map(use),
      accountsToForget: pick([], [], [], others.slice(0, 1)),
      finishesAccount: pick(false, false, false, false, false, false, false, true),
    };
    const sent = pick(false, false, false, false, true) && process.last !== undefined ? process.last : fresh;
    process.last = sent;
    // The next calls report spend of the last of these batches.
    if (lines.some(({ laterSpend = [] }) => laterSpend.length > 0)) batch += 2;
    return {
      step: (store: CounterStore) => store.call(sent),
      learn(answer: unknown) {
        const { outcome } = answer as { readonly outcome: string };
        if (['done', 'absent', 'window'].includes(outcome)) process.number = sent.callNumber;
        if (outcome === 'stale') Object.assign(process, { starts: process.starts + 1, number: 0, last: undefined });
      },
    };
  };
  const closing = (): ((store: CounterStore) => Promise<unknown>) => {
    const account = idOf(pick(...processes));
    const [isOwn, isCharged, forgotten] = [pick(true, false), pick(true, false), pick(counters, some(counters))];
    if (pick(true, false)) return (store) => store.forget(1, account, isCharged, forgotten);
    return async (store) => [await store.freeze(1, account, isOwn), await store.figures(1, account)];
  };
  const audit = (): ((store: CounterStore) => Promise<unknown>) => {
    const row = (): AccountRow => ({
      bookedBatch: Math.max(0, batch - pick(0, 1, 2, 3)),
      callNumber: 0,
      isClosed: pick(true, false),
      isCharged: pick(true, false),
      isClosing: pick(true, false, false),
    });
    const rows = new Map(pick(processes, processes, processes, processes.slice(1)).map((of) => [idOf(of), row()]));
    const read = sums().map((sum) => ({ ...sum, minSum: pick(undefined, 0n, 9n, 2n ** 53n + 3n) }));
    const deadline = now() + pick(1000, 1000, 1000, -1);
    const terms = {
      storeCallsBefore: pick(0, 0, 5, 10, 20, 1000),
      deadline,
      acceptsChangedAccounts: pick(false, true),
    };
    return (store) => store.audit(1, read, rows, terms);
  };

  return {
    sums,
    next() {
      const kind = pick('call', 'call', 'call', 'call', 'call', 'call', 'load', 'closing', 'closing', 'audit');
      if (kind === 'call') return call();
      const read = sums();
      const step =
        kind === 'closing' ? closing() : kind === 'audit' ? audit() : (store: CounterStore) => store.load(1, read);
      return { step, learn: () => undefined };
    },
    async look(store: CounterStore) {
      const all = await store.accounts(false, 50);
      const [ended, states, page] = [store.accounts(true, 50), store.read(counters), store.loaded(0, 50)];
      return { all, ended: await ended, states: await states, page: await page };
    },
  };
}

/** Lists whose order matters. */
const ORDERED = ['changes', 'requests', 'replies', 'remainders', 'unbooked', 'absent', 'states'];

function toComparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toComparable);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? `${value}` : value;
  const members = Object.entries(value).filter(([, of]) => of !== undefined);
  return Object.fromEntries(
    members.sort().map(([name, of]) => {
      const one = toComparable(of);
      return [name, Array.isArray(one) && !ORDERED.includes(name) ? one.map((of) => JSON.stringify(of)).sort() : one];
    }),
  );
}

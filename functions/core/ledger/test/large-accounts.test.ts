// Accounts with more counters than a page: no step depends on their number, and each may be the last of its process.
import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryCounterStore } from '#adapters/memory/counter-store.ts';
import { FIGURES_PAGE } from '../../ports/counter-store.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, type Failure, IMMORTAL, type Process, slow } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

/** More than one page, and less than two. */
const COUNTERS = FIGURES_PAGE + 50;
const AMOUNT = 10n;
const scopes = Array.from({ length: COUNTERS }, (_, place) => scopeOf(`key-${place}`, 1000n));
let scenario: Scenario;
/** The numbers of counters in the steps of closings. */
let sizes: number[];

beforeEach(() => {
  scenario = createScenario();
  sizes = [];
  const { database, store } = scenario;
  const [{ close }, { forget, figures }] = [database.part, store.part];
  database.part.close = (closing) => {
    sizes.push(closing.figures.length);
    return close(closing);
  };
  Object.assign(store.part, {
    async figures(...of: Parameters<typeof figures>) {
      const page = await figures(...of);
      if (page.outcome === 'page') sizes.push(page.figures.length);
      return page;
    },
    forget(...of: Parameters<typeof forget>) {
      sizes.push(of[3].length);
      return forget(...of);
    },
  });
});

/** A process with a request in flight in each counter. */
async function startLarge(process: Process): Promise<StartableLedger> {
  const ledger = await scenario.start(process, scenario.folder);
  await Promise.all(scopes.map((scope) => scenario.take(ledger, AMOUNT, scope)));
  await scenario.time.advance(500);
  return ledger;
}

const counters = () =>
  scenario.folder.records.flatMap((record) => ('scopeWindows' in record ? record.scopeWindows : []));
const expiredRows = () => scenario.ledgerRows.all().filter(({ kind }) => kind === 'expired');
/** The distinct amounts of spend and escrow in all counters. */
const shownIn = async (of: ReturnType<typeof counters>): Promise<ReadonlySet<string>> =>
  new Set((await scenario.store.part.read(of)).map((one) => `${one?.spent} ${one?.escrowOfAll}`));

describe('an account with more counters than a page', () => {
  test('is charged and forgotten by steps of bounded size', async () => {
    const process = createProcess();
    await startLarge(process);
    const all = counters();
    process.is.dead = true;
    await scenario.start();
    await scenario.time.advance(30_000);
    expect(expiredRows().map(({ cost }) => cost)).toEqual(scopes.map(() => AMOUNT));
    expect(await shownIn(all)).toEqual(new Set([`${AMOUNT} 0`]));
    expect(sizes).toContain(FIGURES_PAGE);
    expect(Math.max(...sizes)).toBe(FIGURES_PAGE);
  });

  test.each(['rejects', 'loses'] as const)(
    'is charged once, whichever step of its closing fails: %s',
    async (failure) => {
      for (let at = 0; at < 9; at += 1) {
        scenario = createScenario();
        const process = createProcess();
        await startLarge(process);
        const all = counters();
        process.is.dead = true;
        const steps: string[] = [];
        const failureOf = (method: string): Failure | undefined =>
          ['freeze', 'figures', 'close', 'forget'].includes(method) && steps.push(method) === at + 1
            ? failure
            : undefined;
        await scenario.start({ ...IMMORTAL, failureOf });
        const isSetAside = async (): Promise<boolean> =>
          (await scenario.store.part.read(all)).every(
            (one) => one !== undefined && one.spent + one.escrowOfAll >= AMOUNT,
          );
        await scenario.time.advance(18_000);
        for (let second = 0; second < 12; second += 1) {
          await scenario.time.advance(1000);
          expect(await isSetAside()).toBe(true);
        }
        expect(steps.length).toBeGreaterThan(at);
        expect(expiredRows().map(({ cost }) => cost)).toEqual(scopes.map(() => AMOUNT));
        expect(await shownIn(all)).toEqual(new Set([`${AMOUNT} 0`]));
      }
    },
  );

  test('is closed from its first page again, if another server has taken over between two pages', async () => {
    const process = createProcess();
    await startLarge(process);
    process.is.dead = true;
    const { part } = scenario.store;
    const { figures } = part;
    let isOver = false;
    // The cursor of one server is another place in the other server.
    part.figures = async (epoch, account, cursor) => {
      if (cursor === undefined || isOver) return figures(epoch, account, cursor);
      isOver = true;
      const page = await figures(epoch, account, cursor);
      return page.outcome === 'page' ? { ...page, figures: page.figures.slice(1) } : page;
    };
    await scenario.start();
    await scenario.time.advance(30_000);
    expect(isOver).toBe(true);
    expect(expiredRows().map(({ cost }) => cost)).toEqual(scopes.map(() => AMOUNT));
  });

  test('of an earlier process with a journal is closed by steps of bounded size, and corrected', async () => {
    const process = createProcess();
    await startLarge(process);
    const all = counters();
    process.is.dead = true;
    const next = await scenario.start(IMMORTAL, scenario.folder);
    await scenario.ended(next.flush());
    expect(await shownIn(all)).toEqual(new Set([`${AMOUNT} 0`]));
    expect(Math.max(...sizes)).toBe(FIGURES_PAGE);
    const kinds = Object.groupBy(scenario.ledgerRows.all(), ({ kind }) => kind);
    expect([kinds.expired, kinds.correction, kinds.settled].map((rows) => rows?.length)).toEqual(
      [1, 1, 1].map(() => COUNTERS),
    );
  });

  test('of an earlier process may take longer to forget than leases last: its successor renews its lease meanwhile', async () => {
    const { time, store } = scenario;
    store.part = createMemoryCounterStore({ clock: time.clock, epoch: 0, figuresPage: 20 });
    const process = createProcess();
    const mortal = await scenario.start(process, scenario.folder);
    const reservations = await Promise.all(scopes.map((scope) => scenario.take(mortal, AMOUNT, scope)));
    for (const reservation of reservations) void mortal.settle(reservation, settlementOf(1n));
    await time.advance(2000);
    process.is.dead = true;
    const previous = scenario.calls.at(-1)?.account;
    await scenario.start();
    const { part } = store;
    store.part = slow(part, time, (method) => (method === 'forget' ? 1500 : 0));
    const next = scenario.process(IMMORTAL, scenario.folder);
    const starting = next.start();
    await time.advance(35_000);
    expect((await part.accounts(true, 10)).map(({ account }) => account)).toEqual([previous]);
    await time.advance(10_000);
    await scenario.ended(starting);
    store.part = part;
    expect(scenario.log.lines.filter(({ level }) => level === 'warn')).toEqual([]);
    expect(await shownIn(reservations.flatMap(({ scopeWindows }) => scopeWindows))).toEqual(new Set(['1 0']));
  });

  test('ends with a clean stop by steps of bounded size', async () => {
    const ledger = await scenario.start(IMMORTAL, scenario.folder);
    const reservations = await Promise.all(scopes.map((scope) => scenario.take(ledger, AMOUNT, scope)));
    const all = reservations.flatMap(({ scopeWindows }) => scopeWindows);
    for (const reservation of reservations) void ledger.settle(reservation, settlementOf(1n));
    await scenario.ended(ledger.close());
    expect(await shownIn(all)).toEqual(new Set(['1 0']));
    expect(Math.max(...sizes)).toBe(FIGURES_PAGE);
    expect(await scenario.store.part.accounts(false, 10)).toEqual([]);
  });
});

test('a previous account sets nothing aside in a counter from the call on that reports the counter', async () => {
  const { time, store } = scenario;
  const team = scopeOf('team', 100n, { kind: 'team' });
  const [process, other] = [createProcess(), await scenario.start()];
  const mortal = await scenario.start(process, scenario.folder);
  const stream = await scenario.take(mortal, 60n, team);
  mortal.trackStream(stream, () => 10n);
  await time.advance(2000);
  // The journal has this, and the store does not: it has 60 set aside, of which 10 are at risk.
  void mortal.settle(stream, settlementOf(20n));
  await time.advance(5);
  process.is.dead = true;
  const { part } = store;
  store.part = slow(part, time, (method) => (method === 'forget' ? 1800 : 0));
  const next = scenario.process(IMMORTAL, scenario.folder);
  const starting = next.start();
  await time.advance(100);
  const { outcome, millis } = await scenario.tryReservation(other, requestOf(80n, team));
  expect([outcome, Math.floor(millis / 100)]).toEqual(['reserved', 0]);
  await scenario.ended(starting);
  expect(await scenario.spent(other, team)).toBe(20n);
});

// The law of failures: whichever step of a ledger fails, once, the account continues, the money is right, and
// the log reports it.
import { expect, test } from 'vitest';
import type { MemoryFolder } from '#adapters/memory/journal.ts';
import type { Reservation } from '../../ports/ledger.ts';
import type { StartableLedger } from '../ledger.ts';
import { createProcess, type Failure, IMMORTAL, INJECTED } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const key = scopeOf('key', 1_000_000n, { limits: { rpmLimit: 1000 } });
const other = scopeOf('other', 1_000_000n);

interface Course {
  readonly scenario: Scenario;
  readonly steps: ReadonlyArray<string>;
  /** Errors and refusals that callers got. */
  readonly reports: ReadonlyArray<string>;
  /** Costs of completed replies, by id. */
  readonly completed: ReadonlyMap<string, bigint>;
}

/**
 * The remains of every kind: a journal with a settlement and an open request, and another process that died without its
 * disk.
 */
async function replays(scenario: Scenario, folder: MemoryFolder): Promise<void> {
  const process = createProcess();
  const before = await scenario.start(process, folder);
  const [settled] = [await scenario.take(before, 10n, key), await scenario.take(before, 20n, other)];
  scenario.setPostgres('hangs');
  await scenario.ended(before.settle(settled, settlementOf(3n)));
  process.is.dead = true;
  scenario.setPostgres('up');
  const lost = createProcess();
  await scenario.take(await scenario.start(lost), 5n, other);
  lost.is.dead = true;
}

/** A process from its start to its stop: every kind of step is done. The step number `at` fails. */
async function course(at: number, failure: Failure): Promise<Course> {
  const scenario = createScenario();
  const folder: MemoryFolder = { records: [] };
  await replays(scenario, folder);
  const steps: string[] = [];
  const reports: string[] = [];
  const completed = new Map<string, bigint>();
  const failureOf = (method: string): Failure | undefined =>
    method !== 'set' && steps.push(method) === at + 1 ? failure : undefined;
  const tell = (error: unknown): void => void reports.push(String(error));
  const ledger = scenario.process({ ...IMMORTAL, failureOf }, folder);
  for (let attempt = 0; attempt < 3; attempt += 1)
    await scenario.ended(ledger.start().catch(tell)).then(() => scenario.time.advance(300));

  const take = async (amount: bigint): Promise<Reservation | undefined> => {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const { value } = await scenario.tryReservation(ledger, { ...requestOf(amount, key, other), tokens: 1 });
      if (value.ok) return value.value;
      reports.push(JSON.stringify(value.failure));
    }
    return undefined;
  };
  const complete = async (reservation: Reservation | undefined, cost: bigint): Promise<void> => {
    if (reservation === undefined) return;
    completed.set(reservation.id, cost);
    await scenario.ended(ledger.settle(reservation, settlementOf(cost)));
  };
  await serve(scenario, ledger, { take, complete, tell });
  const last = await take(100n);
  expect(last, `${steps[at]} failed: nothing is admitted any more`).toBeDefined();
  await complete(last, 40n);
  await stop(scenario, ledger, tell);
  // What a failing stop leaves is booked by the next start.
  await scenario.ended((await scenario.start(IMMORTAL, folder)).flush());
  return { scenario, steps, reports: reports, completed };
}

interface Client {
  take(amount: bigint): Promise<Reservation | undefined>;
  complete(reservation: Reservation | undefined, cost: bigint): Promise<void>;
  tell(error: unknown): void;
}

async function serve(scenario: Scenario, ledger: StartableLedger, { take, complete, tell }: Client): Promise<void> {
  const stream = await take(100n);
  if (stream) {
    await scenario.ended(ledger.grow(stream, 5n).then((grown) => grown.ok || tell(JSON.stringify(grown))));
    ledger.trackStream(stream, () => 7n);
  }
  await complete(await take(50n), 30n);
  await scenario.time.advance(2500);
  const free = await take(10n);
  if (free) await scenario.ended(ledger.release(free));
  // The lease of the process that died without its disk ends: it is closed, and audited.
  await scenario.time.advance(25_000);
  await scenario.ended(ledger.maintain().catch(tell));
  await scenario.ended(ledger.spend([key]).then((result) => result.ok || tell(JSON.stringify(result))));
  scenario.wipe();
  await scenario.time.advance(4000);
  await complete(stream, 60n);
  await scenario.ended(ledger.flush().catch(tell));
}

async function stop(scenario: Scenario, ledger: StartableLedger, tell: (error: unknown) => void): Promise<void> {
  await scenario.ended(ledger.chargeLive().catch(tell));
  await scenario.ended(ledger.close());
  await scenario.time.advance(60_000);
  expect(scenario.time.armed()).toBe(0);
}

/**
 * A process of which one kind of step fails for half a minute, with requests meanwhile; then it works again, or never
 * does.
 */
async function longCourse(method: string, failure: Failure, end: 'works again' | 'stops meanwhile'): Promise<void> {
  const scenario = createScenario();
  const folder: MemoryFolder = { records: [] };
  await replays(scenario, folder);
  let [isFailing, isStopped] = [true, false];
  const failureOf = (one: string): Failure | undefined => (isFailing && one === method ? failure : undefined);
  const ledger = scenario.process({ ...IMMORTAL, failureOf }, folder);
  const start = (): Promise<void> =>
    ledger.start().catch(() => {
      if (!isStopped) scenario.time.timer(1000, start);
    });
  void start();
  const completed: bigint[] = [];
  for (let turn = 0; turn < 6; turn += 1) {
    await scenario.time.advance(4000);
    void ledger.reserve(requestOf(100n, key, other)).then(async (held) => {
      if (!held.ok) return;
      ledger.trackStream(held.value, () => 7n);
      await ledger.settle(held.value, settlementOf(10n));
      completed.push(10n);
    });
    if (turn === 3) scenario.wipe();
  }
  await scenario.time.advance(6000);
  const what = `${method} ${failure}, ${end}`;
  if (end === 'works again') {
    isFailing = false;
    await scenario.time.advance(5000);
    expect((await scenario.tryReservation(ledger, requestOf(10n, key, other))).outcome, what).toBe('reserved');
  }
  isStopped = true;
  await scenario.ended(ledger.close());
  await scenario.time.advance(60_000);
  expect(scenario.time.armed(), what).toBe(0);
  await scenario.ended((await scenario.start(IMMORTAL, folder)).flush());
  const sum = scenario.ledgerRows.all().reduce((all, { cost }) => all + cost, 0n);
  expect(sum, what).toBeGreaterThanOrEqual(completed.reduce((all, cost) => all + cost, 0n));
}

const charged = ({ scenario }: Course): bigint => scenario.ledgerRows.all().reduce((sum, { cost }) => sum + cost, 0n);

test.each<Failure>(['throws', 'rejects', 'loses'])(
  'whichever step of a process %s, once, its replies are charged, requests are admitted again, nothing runs after its end, and the failure is reported',
  async (failure) => {
    const whole = await course(-1, failure);
    const expected = charged(whole);
    expect(whole.reports).toEqual([]);
    for (let at = 0; at < whole.steps.length; at += 1) {
      const one = await course(at, failure);
      const what = `step ${at}, ${one.steps[at]}, ${failure}`;
      // What a failure costs more is what was at risk: nothing is ever charged less.
      expect(charged(one), what).toBeGreaterThanOrEqual(
        [...one.completed.values()].reduce((sum, cost) => sum + cost, 0n),
      );
      if (one.completed.size === whole.completed.size) expect(charged(one), what).toBe(expected);
      for (const [id, cost] of one.completed)
        expect(
          one.scenario.ledgerRows.all().filter((entry) => entry.id === id && entry.kind === 'settled'),
          what,
        ).toMatchObject([{ cost }]);
      const lines = one.scenario.log.lines.filter(({ level }) => level !== 'info').map((line) => JSON.stringify(line));
      expect(
        [...lines, ...one.reports].filter((line) => line.includes(INJECTED)),
        what,
      ).not.toEqual([]);
    }
  },
);

test.each<Failure>(['throws', 'rejects', 'loses'])(
  'whichever kind of step always %s, the account works again when it does, nothing runs after a stop meanwhile, and no reply is lost',
  async (failure) => {
    const { steps } = await course(-1, failure);
    for (const method of new Set(steps))
      for (const end of ['works again', 'stops meanwhile'] as const) await longCourse(method, failure, end);
  },
);

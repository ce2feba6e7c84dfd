import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Reservation, ReservationParams } from '../../ports/ledger.ts';
import type { Nano } from '../../ports/money.ts';
import type { ScopePolicy } from '../../ports/policy.ts';
import type { StartableLedger } from '../ledger.ts';
import { type Behaviour, createProcess } from './processes.fixture.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const EDGES: ReadonlyArray<Nano> = [
  100n,
  2n ** 53n - 1n,
  2n ** 53n + 1n,
  10n ** 14n - 1n,
  10n ** 14n + 1n,
  10n ** 17n,
  10n ** 18n,
];

/** One event; shares are thousandths. */
const event = fc.record({
  kind: fc.constantFrom(
    ...([
      'reserve',
      'reserve',
      'reserve',
      'settle',
      'settle',
      'release',
      'grow',
      'grow',
      'progress',
      'kill',
      'database',
      'wait',
    ] as const),
  ),
  scopes: fc.subarray([0, 1, 2], { minLength: 1 }),
  share: fc.nat(700),
  minAmount: fc.nat(700),
  which: fc.nat(3),
  database: fc.constantFrom<Behaviour>('up', 'refuses', 'loses'),
});
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

interface Flight {
  readonly reservation: Reservation;
  readonly scopes: ReadonlyArray<number>;
  amount: Nano;
  known: Nano | undefined;
}

/** The naive count: charges per scope so far, and requests in flight. */
interface Naive {
  readonly spent: Nano[];
  flights: Flight[];
}

interface Stage {
  readonly scenario: Scenario;
  readonly policies: ReadonlyArray<ScopePolicy>;
  readonly limit: Nano;
  readonly naive: Naive;
  ledger: StartableLedger;
  process: ReturnType<typeof createProcess>;
}

/** Every request is charged to its namespace, which has no limit. */
const NAMESPACE = scopeOf('namespace', undefined, { kind: 'namespace' });

const part = (share: number, of: Nano): Nano => (of * BigInt(share)) / 1000n;
const sum = (amounts: ReadonlyArray<Nano>): Nano => amounts.reduce((all, amount) => all + amount, 0n);

function charge(naive: Naive, flight: Flight, cost: Nano): void {
  naive.flights = naive.flights.filter((each) => each !== flight);
  for (const scope of flight.scopes) naive.spent[scope] = (naive.spent[scope] ?? 0n) + cost;
}

/** The answer that the ledger must give: the amount held, or the reason of the refusal. */
function expectedAnswer(
  { naive, limit }: Stage,
  scopes: ReadonlyArray<number>,
  requested: Nano,
  wanted: Nano,
): Nano | string {
  const left = scopes.map((scope) => limit - (naive.spent[scope] ?? 0n));
  const minAmount = wanted < requested ? wanted : requested;
  if (left.some((rest) => rest <= 0n || rest < minAmount)) return 'exceeded';
  const amount = [requested, ...left].reduce((low, rest) => (rest < low ? rest : low));
  const heldIn = (scope: number): Nano =>
    sum(naive.flights.filter((each) => each.scopes.includes(scope)).map((flight) => flight.amount));
  const isBusy = scopes.some((scope, at) => heldIn(scope) + amount > (left[at] ?? 0n));
  return amount > 0n && isBusy ? 'held' : amount;
}

async function reservation(stage: Stage, { scopes, share, minAmount }: Event): Promise<void> {
  const { scenario, naive, limit, policies } = stage;
  const paying = [...scopes.flatMap((scope) => policies[scope] ?? []), NAMESPACE];
  const request: ReservationParams = { ...requestOf(part(share, limit), ...paying), minAmount: part(minAmount, limit) };
  const expected = expectedAnswer(stage, scopes, request.amount, request.minAmount);
  const { value } = await scenario.ended(stage.ledger.reserve(request));
  expect(value.ok ? value.value.amount : value.failure.reason).toBe(expected);
  if (value.ok) naive.flights.push({ reservation: value.value, scopes, amount: value.value.amount, known: undefined });
}

/** All of it in all scopes, or the reason of the refusal. */
async function grow({ scenario, ledger, naive, limit }: Stage, flight: Flight, by: Nano): Promise<void> {
  const left = flight.scopes.map((scope) => limit - (naive.spent[scope] ?? 0n));
  const heldIn = (scope: number): Nano =>
    sum(naive.flights.filter((each) => each.scopes.includes(scope)).map(({ amount }) => amount));
  const isExceeded = left.some((rest) => rest <= 0n || rest < by);
  const isBusy = flight.scopes.some((scope, at) => heldIn(scope) + by > (left[at] ?? 0n));
  const { value } = await scenario.ended(ledger.grow(flight.reservation, by));
  const expected = by === 0n ? 'grown' : isExceeded ? 'exceeded' : isBusy ? 'held' : 'grown';
  expect(value.ok ? 'grown' : value.failure.reason).toBe(expected);
  if (expected === 'grown') flight.amount += by;
  expect(flight.reservation.amount).toBe(flight.amount);
}

/**
 * The memory store dies with its process: a stream is charged at its known cost, every other reservation at its size.
 */
async function kill(stage: Stage): Promise<void> {
  const { scenario, naive } = stage;
  stage.process.is.dead = true;
  for (const flight of naive.flights) charge(naive, flight, flight.known ?? flight.amount);
  scenario.wipe();
  scenario.database.behaviour = 'up';
  stage.process = createProcess();
  stage.ledger = await scenario.start(stage.process, scenario.folder);
}

async function play(stage: Stage, happening: Event): Promise<void> {
  const { scenario, naive, ledger, limit } = stage;
  const flight = naive.flights.at(-1 - happening.which);
  if (happening.kind === 'reserve') return reservation(stage, happening);
  if (happening.kind === 'kill') return kill(stage);
  if (happening.kind === 'wait') return scenario.time.advance(happening.share);
  if (happening.kind === 'database') {
    // A counter cannot be loaded while PostgreSQL is away, so every scope is loaded at the start.
    scenario.database.behaviour = happening.database;
    return;
  }
  if (flight === undefined) return;
  if (happening.kind === 'grow') return grow(stage, flight, part(happening.minAmount, limit));
  const cost = part(happening.share, flight.amount);
  if (happening.kind === 'release') {
    await scenario.ended(ledger.release(flight.reservation));
    charge(naive, flight, 0n);
  } else if (happening.kind === 'settle') {
    await scenario.ended(ledger.settle(flight.reservation, settlementOf(cost)));
    charge(naive, flight, cost);
  } else if (flight.known === undefined || cost > flight.known) {
    ledger.trackStream(flight.reservation, () => cost);
    flight.known = cost;
    await scenario.time.advance(1500);
  }
}

async function isTrue(stage: Stage): Promise<void> {
  const { scenario, naive, limit } = stage;
  // All counters are loaded, so that later requests do not need PostgreSQL.
  const loaded = await scenario.take(stage.ledger, 1n, NAMESPACE);
  await scenario.ended(stage.ledger.settle(loaded, settlementOf(1n)));
  const { value } = await scenario.ended(stage.ledger.spend(stage.policies));
  expect(value.ok ? value.value.map((spend) => spend?.spent) : value.failure).toEqual(naive.spent);
  for (const scope of [0, 1, 2]) {
    const held = sum(naive.flights.filter((each) => each.scopes.includes(scope)).map(({ amount }) => amount));
    expect((naive.spent[scope] ?? 0n) + held <= limit).toBe(true);
  }
}

test('after any events in any order each scope’s spend equals a naive count, is never above its limit, and refusals are true', async () => {
  const property = fc.asyncProperty(
    fc.constantFrom(...EDGES),
    fc.array(event, { minLength: 1, maxLength: 40 }),
    async (limit, events) => {
      const scenario = createScenario();
      const process = createProcess();
      const policies = ['a', 'b', 'c'].map((name) => scopeOf(name, limit));
      const ledger = await scenario.start(process, scenario.folder);
      const stage: Stage = { scenario, process, ledger, limit, policies, naive: { spent: [0n, 0n, 0n], flights: [] } };
      await isTrue(stage);
      for (const happening of events) {
        // After 30 s without PostgreSQL every request is refused; outage.test.ts shows it.
        if (scenario.database.behaviour !== 'up' && happening.kind === 'progress') scenario.database.behaviour = 'up';
        await play(stage, happening);
        if (happening.kind === 'kill') await isTrue(stage);
      }
      scenario.database.behaviour = 'up';
      await isTrue(stage);
      for (const flight of stage.naive.flights) {
        await stage.ledger.release(flight.reservation);
        charge(stage.naive, flight, 0n);
      }
      await scenario.ended(stage.ledger.close());
      const bookedOf = (scope: string): Nano =>
        sum(
          scenario.ledgerRows
            .all()
            .filter(({ scopeWindows }) => scopeWindows.some(({ scopeId }) => scopeId === scope))
            .map(({ cost }) => cost),
        );
      expect(['a', 'b', 'c'].map(bookedOf)).toEqual(stage.naive.spent);
      const rows = scenario.ledgerRows.all().filter(({ kind }) => kind === 'settled');
      expect(bookedOf(NAMESPACE.scopeId)).toBe(sum(rows.map(({ cost }) => cost)));
    },
  );
  const first: Event = { kind: 'reserve', scopes: [2], share: 10, minAmount: 0, which: 0, database: 'up' };
  const freeSoFar: Array<Event> = [first, { ...first, kind: 'progress', share: 0 }, { ...first, kind: 'kill' }];
  await fc.assert(property, { numRuns: runs(100), examples: [[100n, freeSoFar]] });
});

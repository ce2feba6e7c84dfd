// No sequence of requests passes a limit of tokens per minute, however much they reserve and however they end.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Reservation } from '../../ports/ledger.ts';
import type { RateLimit } from '../../ports/rates.ts';
import type { StartableLedger } from '../ledger.ts';
import { createScenario, requestOf, type Scenario, scopeOf, settlementOf } from './scenario.promises.ts';

const MINUTE = 60_000;
const LIMIT = 100;
/** The key has the limit, and so has each of two model entries. */
const KEY = scopeOf('key', undefined, { limits: { tpmLimit: LIMIT } });
const ENTRIES: ReadonlyArray<RateLimit> = ['entry one', 'entry two'].map((id) => ({ id, tokens: LIMIT }));

const event = fc.record({
  kind: fc.constantFrom('take', 'take', 'take', 'settle', 'settle', 'release', 'fail', 'move', 'wipe'),
  by: fc.nat(1),
  reserved: fc.constantFrom(0, 1, 30, 50, 99, 100, 101, 250, 100_000),
  used: fc.constantFrom(0, 1, 30, 90, 100, 300),
  which: fc.nat(5),
  pause: fc.constantFrom(50, 50, 50, 100, 1000, 20_000, 40_000, 59_000, 61_000),
});
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** The naive count: a request counts in a limit, in the minute in which it took its tokens. */
interface Count {
  readonly limit: string;
  readonly minute: number;
  tokens: number;
}

interface Flight {
  readonly reservation: Reservation;
  readonly by: StartableLedger;
  readonly reserved: number;
  counts: Count[];
}

interface Course {
  readonly scenario: Scenario;
  readonly processes: ReadonlyArray<StartableLedger>;
  flights: Flight[];
  counts: Count[];
}

const minuteOf = ({ scenario }: Course): number => Math.floor(scenario.time.clock.now() / MINUTE);

/** Counts the tokens, and checks that the limit has room for them in this minute. */
function count(course: Course, limit: string, tokens: number): Count {
  const one = { limit, minute: minuteOf(course), tokens };
  course.counts.push(one);
  const all = course.counts.filter((other) => other.limit === limit && other.minute === one.minute);
  const sum = all.reduce((total, other) => total + other.tokens, 0);
  expect(sum, `tokens of ${limit} in a minute`).toBeLessThanOrEqual(LIMIT);
  return one;
}

async function take(course: Course, { by: which, reserved }: Event): Promise<void> {
  const { scenario, processes } = course;
  const by = processes[which];
  if (by === undefined) return;
  const request = { ...requestOf(0n, KEY), tokens: reserved, modelEntryLimits: ENTRIES };
  const { value: result } = await scenario.ended(by.reserve(request));
  if (!result.ok) return;
  const reservation = result.value;
  const tokens = Math.min(reserved, LIMIT);
  const counts = ['key', ENTRIES[reservation.modelEntryIndex ?? 0]?.id ?? ''].map((limit) =>
    count(course, limit, tokens),
  );
  course.flights.push({ reservation, by, reserved, counts });
}

/** Tokens beyond the reservation count in the minute in which they become known, and delay later requests. */
async function end(course: Course, flight: Flight, { kind, used }: Event): Promise<void> {
  const { scenario } = course;
  const { reservation, by } = flight;
  course.flights = course.flights.filter((one) => one !== flight);
  const isSettled = kind === 'settle';
  const tokens = { input: used, output: 0, cachedInput: 0, cacheWrite: 0 };
  if (isSettled) await scenario.ended(by.settle(reservation, { ...settlementOf(0n), tokens }));
  else await scenario.ended(by.release(reservation, { called: kind === 'fail' }));
  for (const one of flight.counts) {
    const excess = (isSettled ? used : 0) - one.tokens;
    one.tokens = Math.min(one.tokens, isSettled ? used : 0);
    if (excess > 0) course.counts.push({ limit: one.limit, minute: minuteOf(course), tokens: excess });
  }
}

async function move(course: Course, flight: Flight): Promise<void> {
  const [ofKey, ofEntry] = flight.counts;
  const to = ENTRIES.find(({ id }) => id !== ofEntry?.limit);
  const { value: result } = await course.scenario.ended(flight.by.moveToModelEntry(flight.reservation, to));
  if (!result.ok || to === undefined || ofKey === undefined || ofEntry === undefined) return;
  ofEntry.tokens = 0;
  flight.counts = [ofKey, count(course, to.id, Math.min(flight.reserved, LIMIT))];
}

/** Rates restart empty: use before the restart no longer counts, and is counted again when its true amount is known. */
async function wipe(course: Course): Promise<void> {
  course.scenario.wipe();
  await course.scenario.time.advance(4000);
  course.counts = [];
  for (const { counts } of course.flights) for (const one of counts) one.tokens = 0;
}

async function play(events: ReadonlyArray<Event>): Promise<void> {
  const scenario = createScenario();
  const course: Course = {
    scenario,
    processes: [await scenario.start(), await scenario.start()],
    flights: [],
    counts: [],
  };
  for (const one of events) {
    const flight = course.flights[one.which % Math.max(1, course.flights.length)];
    if (one.kind === 'take') await take(course, one);
    else if (one.kind === 'wipe') await wipe(course);
    else if (flight !== undefined) await (one.kind === 'move' ? move(course, flight) : end(course, flight, one));
    await scenario.time.advance(one.pause);
  }
}

test('no minute of the clock admits more tokens than the limit, whatever requests reserve, use and leave, and wherever they move', async () => {
  await fc.assert(fc.asyncProperty(fc.array(event, { minLength: 5, maxLength: 60 }), play), { numRuns: runs(500) });
}, 120_000);

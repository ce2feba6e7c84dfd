// Scenarios: the requests and faults of a schedule. One small scenario for every single deviation, and endless larger
// random ones.
import { random } from '../../support/random.ts';
import type { Fault, PlannedRequest, Scenario } from './execution.ts';

/**
 * Four requests, two scopes, two processes; any two of the first three requests fit, not all; the last scope has escrow
 * ahead.
 */
export const SMALL: Omit<Scenario, 'faults'> = {
  limits: [5n, 4n, 200n],
  gateways: 2,
  plannedRequests: [
    { by: 0, scopes: [0, 2], amount: 3n, cost: 2n, end: 'both', grow: 1n },
    { by: 1, scopes: [0, 1], amount: 2n, cost: 2n, end: 'settle', streamedCost: 1n },
    { by: 1, scopes: [1], amount: 3n, cost: 3n, end: 'release' },
    { by: 0, scopes: [2], amount: 2n, cost: 1n, end: 'settle', grow: 2n },
  ],
};

/** The same with two requests that are in flight until their process dies. */
export const WITH_STREAMS: typeof SMALL = {
  ...SMALL,
  plannedRequests: [
    ...SMALL.plannedRequests,
    { by: 0, scopes: [2], amount: 9n, cost: 9n, end: 'never', grow: 3n },
    { by: 1, scopes: [2], amount: 9n, cost: 9n, end: 'never', streamedCost: 7n },
  ],
};

const FAULTS: readonly [Fault, ...Fault[]] = [
  ...(['lose', 'wipe', 'restore', 'die', 'vanish', 'stop'] as const),
  ...(['freeze', 'sleep', 'hang', 'clock', 'lower', 'audit'] as const),
];
const ENDS: readonly [PlannedRequest['end'], ...PlannedRequest['end'][]] = [
  'settle',
  'settle',
  'settle',
  'both',
  'release',
  'never',
];
const SCOPES: readonly [number[], ...number[][]] = [[0], [1], [2], [2], [0, 1], [0, 1, 2], [2, 0]];

/** A random scenario, the same for the same seed. */
export function scenarioOf(seed: number): Scenario {
  const next = random(seed ^ 0x5ce4e);
  // Requests of every fourth scenario grow: a seed that was wrong once keeps its scenario.
  const grows = seed % 4 === 0 ? random(seed ^ 0x6209) : () => 1;
  const below = (max: number): number => Math.floor(next() * max);
  // The last scope is wide, others now and then: there escrow is got ahead of requests.
  const limitOf = (max: number): bigint => BigInt(next() < 0.2 ? 100 + below(200) : 5 + below(max));
  const limits = [limitOf(9), limitOf(7), BigInt(100 + below(200))];
  // A scope of each second of the later seeds is the budget that a key policy gives a key, after some requests.
  const joins = seed >= 1_000_000 && seed % 2 === 0 ? random(seed ^ 0xd13) : undefined;
  const joined = joins && { limit: BigInt(6 + Math.floor(joins() * 20)), joinsAfter: Math.floor(joins() * 2000) };
  const plannedRequests = Array.from({ length: 3 + below(6) }, (): PlannedRequest => {
    // Some requests want nearly all of it, some nothing.
    const isLarge = next() < 0.08;
    const small = BigInt(next() < 0.05 ? 0 : 1 + below(5));
    const amount = isLarge ? (limits[2] ?? 0n) - BigInt(below(10)) : small;
    const cost = next() < 0.6 ? amount : BigInt(below(Number(amount)));
    return {
      by: below(2),
      scopes: isLarge ? [2] : pick(SCOPES, below),
      amount,
      end: pick(ENDS, below),
      cost: next() < 0.1 ? amount + 1n : cost,
      ...(next() < 0.3 ? { streamedCost: BigInt(below(Number(cost) + 1)) } : {}),
      ...(next() < 0.1 ? { minAmount: 1n } : {}),
      ...(next() < 0.2 ? { after: below(4000) } : {}),
      ...(grows() < 0.5 ? { grow: BigInt(1 + Math.floor(grows() * 4)) } : {}),
    };
  });
  const faults: Partial<Record<Fault, number>> = {};
  for (let count = 1 + below(3); count > 0; count -= 1) {
    const fault = pick(FAULTS, below);
    faults[fault] = (faults[fault] ?? 0) + 1;
  }
  // Processes of every seventh scenario make an error of their own.
  if (seed % 7 === 3) faults.error = 1 + (seed % 2);
  const scenario = { gateways: 1 + below(2), plannedRequests, faults, edge: next() < 0.2 ? below(600) : undefined };
  if (joined === undefined) return { ...scenario, limits };
  return { ...scenario, limits: [...limits, joined.limit], joinsAfter: joined.joinsAfter };
}

const pick = <const T>(of: readonly [T, ...T[]], below: (max: number) => number): T => of[below(of.length)] ?? of[0];

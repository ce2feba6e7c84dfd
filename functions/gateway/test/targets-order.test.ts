// Order of targets: each strategy orders them by its rule, whatever the entries.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { orderByStrategy } from '../targets/targets.ts';

interface TestTarget {
  readonly entry: { readonly identifier: string; readonly weight: number; readonly priority: number };
  readonly busy: number;
}

const targets = fc
  .array(
    fc.record({ weight: fc.integer({ min: 1, max: 1000 }), priority: fc.nat({ max: 3 }), busy: fc.nat({ max: 3 }) }),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((list) =>
    list.map(({ busy, ...entry }, index): TestTarget => ({ busy, entry: { identifier: `e${index}`, ...entry } })),
  );
const dice = fc.uint8Array({ minLength: 64, maxLength: 64 });

/** Random bytes, in the order in which they are drawn. */
function rolls(bytes: Uint8Array) {
  let at = 0;
  return (count: number) => Uint8Array.from({ length: count }, () => bytes[at++ % bytes.length] ?? 0);
}

const order = (list: ReadonlyArray<TestTarget>, strategy: string, bytes: Uint8Array) =>
  orderByStrategy(list, strategy, {
    random: rolls(bytes),
    inFlight: (identifier) => list.find(({ entry }) => entry.identifier === identifier)?.busy ?? 0,
  });

describe.each(['SimpleShuffle', 'Priority', 'LeastBusy'])('with %s', (strategy) => {
  test('every entry is tried, and none twice', () => {
    fc.assert(
      fc.property(targets, dice, (list, bytes) => {
        const ordered = order(list, strategy, bytes).map(({ entry }) => entry.identifier);
        expect([...ordered].sort()).toEqual(list.map(({ entry }) => entry.identifier).sort());
      }),
    );
  });
});

test('with Priority no entry comes before one with a lower number', () => {
  fc.assert(
    fc.property(targets, dice, (list, bytes) => {
      const priorities = order(list, 'Priority', bytes).map(({ entry }) => entry.priority);
      expect(priorities).toEqual([...priorities].sort((a, b) => a - b));
    }),
  );
});

test('with LeastBusy no entry comes before one with fewer requests in flight', () => {
  fc.assert(
    fc.property(targets, dice, (list, bytes) => {
      const busy = order(list, 'LeastBusy', bytes).map((one) => one.busy);
      expect(busy).toEqual([...busy].sort((a, b) => a - b));
    }),
  );
});

test.each(['SimpleShuffle', 'Priority', 'LeastBusy'])(
  'among equals, %s gives each first place by its share of the weights',
  (strategy) => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 32 }), { minLength: 2, maxLength: 5 }), (weights) => {
        const list = weights.map(
          (weight, index): TestTarget => ({ busy: 0, entry: { identifier: `e${index}`, weight, priority: 0 } }),
        );
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const first = new Map<string, number>();
        // One draw for each unit of weight, spread evenly: each entry must win exactly its share of the draws.
        for (let share = 0; share < total; share += 1) {
          const thrown = new Uint8Array(64);
          new DataView(thrown.buffer).setUint32(0, Math.floor(((share + 0.5) / total) * 2 ** 32));
          const winner = order(list, strategy, thrown)[0]?.entry.identifier ?? '';
          first.set(winner, (first.get(winner) ?? 0) + 1);
        }
        expect(list.map(({ entry }) => first.get(entry.identifier) ?? 0)).toEqual(weights);
      }),
      { numRuns: 30 },
    );
  },
);

// Scenes: the requests and faults of a schedule. One small scene for every single deviation, and endless larger random ones.
import { random } from '../../random.ts';
import type { Fault, Scene, Wish } from './course.ts';

/** Three requests, two scopes, two processes; any two requests fit, not all three. */
export const SMALL: Omit<Scene, 'faults'> = {
  limits: [5n, 4n],
  gateways: 2,
  wishes: [
    { by: 0, scopes: [0], amount: 3n, cost: 2n, end: 'both' },
    { by: 1, scopes: [0, 1], amount: 2n, cost: 2n, end: 'settle', known: 1n },
    { by: 1, scopes: [1], amount: 3n, cost: 3n, end: 'release' },
  ],
};

const FAULTS: ReadonlyArray<Fault> = ['lose', 'wipe', 'restore', 'die', 'vanish', 'freeze', 'hang', 'sleep'];
const ENDS: ReadonlyArray<Wish['end']> = ['settle', 'settle', 'settle', 'both', 'release', 'never'];

/** A random scene, the same for the same seed. */
export function sceneOf(seed: number): Scene {
  const next = random(seed ^ 0x5ce4e);
  const below = (most: number): number => Math.floor(next() * most);
  const wishes = Array.from({ length: 3 + below(4) }, (): Wish => {
    const amount = BigInt(1 + below(5));
    const cost = next() < 0.6 ? amount : BigInt(below(Number(amount)));
    const scopes = [[0], [1], [0, 1], [0, 1, 2]][below(4)] ?? [0];
    const known = next() < 0.3 ? { known: BigInt(below(Number(cost) + 1)) } : {};
    return { by: below(2), scopes, amount, cost, end: ENDS[below(ENDS.length)] ?? 'settle', ...known };
  });
  const faults: Partial<Record<Fault, number>> = {};
  for (let count = 1 + below(3); count > 0; count -= 1) {
    const fault = FAULTS[below(FAULTS.length)] ?? 'lose';
    faults[fault] = (faults[fault] ?? 0) + 1;
  }
  return { limits: [12n, 9n, 7n], gateways: 1 + below(2), wishes, faults };
}

// How does the work of a review and of a run grow with objects of the largest sizes that are accepted? In proportion,
// whatever their author chose.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../support/child.ts';

const PROGRAM = join(import.meta.dirname, 'count.ts');
/** Twice as many may take so many times the steps: n log n is allowed, n² (4) is not. */
const MAX_GROWTH = 2.5;
/** Steps of one review, or of one run over some hundred objects: tens of milliseconds. */
const MAX_STEPS = 10_000_000;

test.each(['admission.ts', 'reconcile.ts'])(
  'twice as much of anything in %s takes about twice the steps',
  async (file) => {
    const { code, stdout, stderr } = await run('node', [PROGRAM, file]);
    expect([code, stderr]).toEqual([0, '']);
    const counted = JSON.parse(stdout) as Readonly<Record<string, readonly [number, number]>>;
    const growth = Object.entries(counted).map(([name, [once, twice]]) => ({ name, once, twice, times: twice / once }));
    expect(growth.filter(({ times, once, twice }) => times > MAX_GROWTH || once < 1000 || twice > MAX_STEPS)).toEqual(
      [],
    );
    expect(growth.length).toBeGreaterThan(3);
  },
);

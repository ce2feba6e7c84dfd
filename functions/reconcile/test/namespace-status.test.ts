// Which namespaces the status of an instance shows.
import { expect, test } from 'vitest';
import type { Claim } from '#core/ports/registry.ts';
import { windowOf } from '../key/budget.ts';
import { namespaceSpends } from '../plan/namespace-status.ts';
import { claimKey, sumKey } from '../world.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');

/** Claims of namespaces with a limit and a spend, in nano-dollars. */
function viewOf(namespaces: ReadonlyArray<readonly [name: string, limit: bigint | undefined, spent: bigint]>) {
  const claims = new Map<string, Claim>();
  const sums = new Map<string, bigint>();
  for (const [alias, limit, spent] of namespaces) {
    const budget =
      limit === undefined ? undefined : { limit: `${limit}`, duration: '1d', alignment: 'Rolling' as const };
    const holder = { uid: 'namespace', namespace: alias, name: alias };
    const policy = { budget, policyName: 'a' };
    claims.set(claimKey('namespace', alias), {
      ...{
        scopeId: `scope-${alias}`,
        kind: 'namespace',
        alias,
        holder,
        anchor: NOW,
        policy,
        generation: 1,
        values: [],
      },
    });
    if (budget !== undefined) sums.set(sumKey(`scope-${alias}`, windowOf(budget, NOW, NOW)), spent);
  }
  return { claims, sums };
}
const shown = (view: ReturnType<typeof viewOf>) => namespaceSpends(view, NOW).map(({ name }) => name);

test('namespaces with a budget are shown by name', () => {
  expect(
    shown(
      viewOf([
        ['b', 1n, 0n],
        ['c', undefined, 0n],
        ['a', 2n, 2n],
      ]),
    ),
  ).toEqual(['a', 'b']);
});

test('of more than 500, those with the largest shares are shown, by name; a budget of zero is spent', () => {
  const many = Array.from({ length: 498 }, (_, index) => [`m${index}`, 100n, 50n] as const);
  const names = shown(
    viewOf([['z', 1_000_000n, 510_000n], ['least', 100n, 49n], ['none', 0n, 0n], ['x', 9n, 0n], ...many]),
  );
  expect(names).toHaveLength(500);
  expect(names).toEqual(names.toSorted());
  expect(names).toEqual(expect.arrayContaining(['z', 'none']));
  expect(names).not.toContain('least');
  expect(names).not.toContain('x');
});

// Promises of money in accounts: exact at every size, never above a limit, the same as a naive count (LEDGER 1, 4).
import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { Millis, Nano } from '../money.ts';
import { type Event, eventOf, modelAccounts, scopeOf, toComparable } from './counter-store.model.promises.ts';
import {
  type AccountsUnderTest,
  accountsScenario,
  changeOf,
  type Process,
  requestOf,
} from './counter-store.scenario.promises.ts';

/** Amounts at which a kind of number is no longer exact, or at which a store counts in another way. */
const EDGES: ReadonlyArray<Nano> = [
  10n ** 13n + 1n,
  10n ** 14n - 1n,
  10n ** 14n + 1n,
  3n * 10n ** 15n + 1n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  10n ** 17n,
  10n ** 18n,
  10n ** 23n + 1n,
];

/** `make` as in `describeAccounts`, which runs this too; `clock` as there. */
export function describeMoney(make: () => Promise<AccountsUnderTest>, clock: 'manual' | 'real'): void {
  describe('money', () => {
    let under: AccountsUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    const { loadCounter, start, read, freeze, forget } = accountsScenario(() => under);

    test.each(EDGES)('is exact around %s nano-dollars', async (edge) => {
      const [key, team] = [await loadCounter('key', edge, edge - 10n), await loadCounter('team', edge, edge - 10n)];
      const [one, two] = [start(), start()];
      expect(await one.reservation(11n, key)).toMatchObject({ outcome: 'exceeded', spent: edge - 10n });
      const requests = [requestOf(11n, { counters: [0, 1], minAmount: 10n })];
      const reply = await one.call({ changes: [changeOf(key), changeOf(team)], requests });
      expect(reply).toMatchObject({
        replies: [{ outcome: 'reserved', amount: 10n }],
        counters: [{ spent: edge - 10n, escrowOfAll: 10n, escrow: 10n }, { escrowOfAll: 10n }],
      });
      expect(await two.reservation(1n, team)).toMatchObject({ outcome: 'held' });
      expect(await one.report(key, { spend: 3n, returned: 1n, risk: 6n })).toMatchObject({
        spent: edge - 7n,
        escrowOfAll: 6n,
        escrow: 6n,
      });
      expect(await two.reservation(2n, key)).toMatchObject({ outcome: 'held' });
      expect(await two.reservation(1n, key)).toMatchObject({ outcome: 'reserved' });
      expect(await read(key, team)).toEqual([
        [edge - 7n, 7n],
        [edge - 10n, 10n],
      ]);
    });

    test.each(EDGES)(
      'is exact in amounts of %s nano-dollars: held, spent, taken back, charged, audited',
      async (edge) => {
        const key = await loadCounter('key', 5n * edge, 1n);
        const one = start();
        expect(await one.reservation(edge, key)).toMatchObject({ outcome: 'reserved', amount: edge });
        expect(await one.reservation(edge - 1n, key)).toMatchObject({ outcome: 'reserved' });
        expect(await one.report(key, { spend: edge - 1n, risk: edge })).toMatchObject({
          spent: edge,
          escrowOfAll: edge,
        });
        expect(
          await one.report(key, { spend: 2n - edge, risk: edge - 1n, carriedOver: edge }, { batch: 2 }),
        ).toMatchObject({
          spent: 2n,
          escrowOfAll: 2n * edge,
          escrow: 2n * edge,
        });
        expect(await one.report(key, { spend: 1n, risk: edge + 1n }, { batch: 2 })).toMatchObject({
          escrowOfAll: 2n * edge - 1n,
        });
        const reply = await freeze(one.account, true);
        expect(reply).toMatchObject({
          figures: [
            {
              escrow: 2n * edge - 1n,
              risk: edge + 1n,
              unbookedSpend: [
                { batch: 1, spend: edge - 1n },
                { batch: 2, spend: 3n - edge },
              ],
            },
          ],
        });
        await forget(one.account, true);
        expect(await read(key)).toEqual([[edge + 4n, 0n]]);
        const row = { bookedBatch: 0, callNumber: 5, isClosed: true, isCharged: true, isClosing: false };
        const rows = new Map([[one.account, row]]);
        const sums = [{ scopeId: 'key', window: key.window, spent: 4n * edge - 1n }];
        expect(
          await under.store.audit(under.epoch, sums, rows, { storeCallsBefore: 0, deadline: under.now() + 60_000 }),
        ).toMatchObject({
          differences: [{ by: 3n * edge - 5n }],
        });
        expect(await read(key)).toEqual([[4n * edge - 1n, 0n]]);
      },
    );

    test.each(EDGES)('ahead of requests is a sixteenth of %s nano-dollars to the last one', async (edge) => {
      const key = await loadCounter('key', 16n * (edge / 16n));
      const one = start();
      expect(await one.report(key, { ahead: edge / 16n + 1n })).toMatchObject({ escrow: 0n });
      expect(await one.report(key, { ahead: edge / 16n })).toMatchObject({ escrow: edge / 16n });
    });

    test('is never above a limit and always equals a naive count, after any calls of three accounts in any order', async () => {
      const pauses: Millis[] = clock === 'manual' ? [0, 0, 0, 400, 1000] : [0];
      const property = fc.asyncProperty(
        fc.constantFrom(1000n, ...EDGES),
        fc.array(eventOf(...pauses), { minLength: 1, maxLength: 40 }),
        async (limit, events) => {
          under = await make();
          const counters = await Promise.all([0, 1, 2].map((of) => loadCounter(scopeOf(of), limit)));
          const world = { counters, model: modelAccounts(limit), processes: [start(), start(), start()] };
          for (const event of events) {
            if (event.advance > 0) await under.advance(event.advance);
            await apply(world, event);
            expect(await read(...counters)).toEqual(world.model.counters());
            expect(world.model.isWithinLimits()).toBe(true);
          }
        },
      );
      await fc.assert(property, { numRuns: clock === 'manual' ? runs(100) : 10 });
    });

    interface World {
      readonly counters: Awaited<ReturnType<typeof loadCounter>>[];
      readonly model: ReturnType<typeof modelAccounts>;
      readonly processes: Process[];
    }

    /** Applies a step to the store and to the model, and compares their replies. */
    async function apply({ counters, model, processes }: World, event: Event): Promise<void> {
      const process = processes[event.by];
      if (process === undefined) throw new Error('there are three processes');
      const { account } = process;
      const expectFigures = async (isOwn: boolean) => {
        const reply = await freeze(account, isOwn);
        expect(toComparable(reply.outcome === 'frozen' ? reply.figures : [])).toEqual(model.figuresOf(account));
      };
      const deadline = under.now() + (event.isLate && model.isOpen(account) ? -1000 : 60_000);
      const part = { ...model.toPart(account, event, counters), deadline };
      const lease = event.kind === 'close' ? { lease: 1 } : {};
      const reply = await process.call({ ...part, ...lease });
      const requests = model.call({ ...part, account }, under.now());
      expect(reply).toMatchObject({ replies: requests, counters: model.repliesOf(account, under.now()) });
      if (event.kind === 'repeat') expect(await process.repeat()).toEqual({ ...reply, now: expect.any(Number) });
      if (event.kind !== 'rejoin' && event.kind !== 'close') return;
      const next = start();
      processes[event.by] = next;
      if (event.kind === 'close') {
        await under.advance(2);
        await expectFigures(false);
        await forget(account, true);
        model.charge(account);
      } else {
        await expectFigures(true);
        const risks = model.risksOf(account);
        const changes = counters.map((of, at) => {
          const risk = risks[at] ?? 0n;
          return changeOf(of, { carriedOver: risk, risk, spend: -risk });
        });
        model.replace(account, next.account);
        expect(await next.call({ changes, accountsToForget: [account] })).toMatchObject({
          counters: model.repliesOf(next.account, under.now()),
        });
        await forget(account, true);
      }
    }
  });
}

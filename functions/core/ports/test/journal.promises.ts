// Promises of all journales, in memory or on disk.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Journal, JournalRecord } from '../journal.ts';
import type { LedgerRow } from '../ledger-rows.ts';
import type { Nano } from '../money.ts';

export interface JournalUnderTest {
  /** The journal of a new process on the same folder; the previous journal is closed, or its process is dead. */
  readonly open: () => Promise<Journal>;
  /** Drops the journal as a `kill -9` would. */
  readonly kill: (journal: Journal) => Promise<void>;
}

const EDGES: ReadonlyArray<Nano> = [0n, 2n ** 53n + 1n, 10n ** 14n + 1n, 10n ** 18n];

export function reservationRecord(id: string, amount: Nano = 5n): Extract<JournalRecord, { type: 'reserve' }> {
  const scopeWindows = [{ scopeId: 'key "one"\n', window: { start: 1, end: 2 } }];
  return { type: 'reserve', id, amount, scopeWindows, model: 'größer/模型', identifier: 'a\u2028b' };
}

export function rowRecord(id: string, cost: Nano = 3n): JournalRecord {
  const tokens = { input: 1, output: 2, cachedInput: 3, cacheWrite: 4 };
  const { scopeWindows, model, identifier } = reservationRecord(id);
  const row: LedgerRow = {
    id,
    kind: 'settled',
    scopeWindows,
    cost,
    tokens,
    model,
    identifier,
    estimated: false,
    settledAt: 7,
  };
  return { type: 'settle', row };
}

/** `make` returns an empty folder; it is called once per test. */
export function describeJournal(name: string, make: () => Promise<JournalUnderTest>): void {
  describe(`the journal in ${name}`, () => {
    let under: JournalUnderTest;
    let journal: Journal;

    beforeEach(async () => {
      under = await make();
      journal = await under.open();
    });
    afterEach(() => journal.close());

    const restart = async (): Promise<ReadonlyArray<JournalRecord>> => {
      await under.kill(journal);
      journal = await under.open();
      return journal.replay();
    };

    test('begins empty', async () => {
      expect(await journal.replay()).toEqual([]);
    });

    test('gives the next process every appended record, in order, whatever its text', async () => {
      await journal.replay();
      const records: JournalRecord[] = [
        { type: 'account', id: 'c' },
        reservationRecord('a'),
        reservationRecord('a', 9n),
        { type: 'progress', id: 'a', cost: 4n },
        rowRecord('a'),
        reservationRecord('b'),
        rowRecord('b'),
        { type: 'release', id: 'b' },
      ];
      for (const record of records) await journal.append(record);
      expect(await restart()).toEqual(records);
      expect(await restart()).toEqual(records);
    });

    test.each(EDGES)('keeps %s nano-dollars exactly', async (amount) => {
      const records = [reservationRecord('a', amount), { type: 'progress', id: 'a', cost: amount } as const];
      for (const record of records) await journal.append(record);
      await journal.append(rowRecord('b', amount));
      expect(await restart()).toEqual([...records, rowRecord('b', amount)]);
    });

    test('loses none of a thousand records appended concurrently', async () => {
      const records = Array.from({ length: 1000 }, (_, index) => reservationRecord(`id-${index}`));
      await Promise.all(records.map((record) => journal.append(record)));
      expect(await restart()).toEqual(records);
    });

    test('forgets what was done before a clean stop', async () => {
      await journal.replay();
      await journal.append(reservationRecord('a'));
      await journal.append(rowRecord('a'));
      journal.drop(['a', 'unknown']);
      await journal.close();
      journal = await under.open();
      expect(await journal.replay()).toEqual([]);
    });

    test('names each account of the folder until that is done, whatever becomes of requests', async () => {
      const [earlier, later] = [
        { type: 'account', id: 'one' },
        { type: 'account', id: 'two' },
      ] as const;
      await journal.append(earlier);
      await journal.append(reservationRecord('a'));
      journal.drop(['a']);
      await restart();
      await journal.append(later);
      expect((await restart()).filter(({ type }) => type === 'account')).toEqual([earlier, later]);
      journal.drop(['one', 'two', 'a']);
      await journal.close();
      journal = await under.open();
      expect(await journal.replay()).toEqual([]);
    });

    test('that is discarded leaves nothing to the next process, and takes no more', async () => {
      await journal.append(reservationRecord('old'));
      await restart();
      await journal.append(reservationRecord('new'));
      journal.discard();
      await expect(journal.append(reservationRecord('late'))).rejects.toThrow('discarded');
      expect(await restart()).toEqual([]);
    });

    test('keeps records that are not dropped, also those of an earlier process', async () => {
      await journal.append(reservationRecord('old'));
      await restart();
      await journal.append(reservationRecord('new'));
      await journal.append(reservationRecord('done'));
      journal.drop(['done']);
      const remaining = (await restart()).map((record) => ('row' in record ? record.row.id : record.id));
      expect(remaining).toEqual(expect.arrayContaining(['old', 'new']));
    });
  });
}

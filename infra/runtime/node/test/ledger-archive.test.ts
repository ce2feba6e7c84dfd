// Answers of a tenant's database to the archive: whatever they are, the reconciler continues.
import { expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createLedgerArchive, type LedgerArchiveDependencies } from '../ledger-archive.ts';

type Database = Parameters<ReturnType<typeof createLedgerArchive>['add']>[0];

/** A database that answers each statement with this row, again and again. */
function databaseOf(row: object): Database {
  const query = async () => [row];
  const session = {
    query,
    run: (_: number, work: (query: unknown) => unknown) => work(query),
    transaction: (_: number, work: (query: unknown) => unknown) => work(query),
    withWorkMemory: () => session,
  };
  const within = { dropDays: async () => [] };
  return { session, withWorkMemory: () => within } as unknown as Database;
}

function archiveOf(set: LedgerArchiveDependencies['metrics']['set'] = () => undefined) {
  const log = createMemoryLog();
  const archive = createLedgerArchive({
    archive: { url: 'file:///archive', write: async () => undefined, read: async () => undefined },
    keptDays: 30,
    clock: { now: () => 0 },
    log,
    metrics: { set },
  });
  return { archive, log };
}

const FOREIGN = [undefined, null, 'x', '0x', -1, 1.5, Number.NaN, {}, [], 'x'.repeat(2000)];

test.each(FOREIGN)('a row with %j in each column is no metric, and ends no process', async (value) => {
  const columns = 'lease folder day from until isWritten inserts rows cost ids days id kind name'.split(' ');
  const metrics: unknown[] = [];
  const { archive, log } = archiveOf((_, days) => void metrics.push(days));
  archive.add(databaseOf(Object.fromEntries(columns.map((column) => [column, value]))));
  await archive.work();
  expect(metrics).toEqual([]);
  expect(log.lines).toMatchObject([{ message: expect.stringContaining('cannot write days of ledger rows') }]);
});

test('an error of our own is in the log, and the next resync works again', async () => {
  const { archive, log } = archiveOf(() => {
    throw new TypeError('no such metric');
  });
  for (const errors of [1, 2]) {
    archive.add(databaseOf({ days: 0 }));
    await archive.work();
    expect(log.lines.filter(({ level }) => level === 'error')).toHaveLength(errors);
  }
});

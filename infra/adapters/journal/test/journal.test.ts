import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { cp, mkdtemp } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Journal, JournalRecord } from '#core/ports/journal.ts';
import { describeJournal, reservationRecord, rowRecord } from '#core/ports/test/journal.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { createJournal } from '../journal.ts';

const root = mkdtempSync(join(tmpdir(), 'journal-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const idOf = (record: JournalRecord): string => ('row' in record ? record.row.id : record.id);
const logsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.log'))
    .sort();
const bytesIn = (folder: string): number =>
  logsIn(folder).reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0);

/** A folder as `kill -9` leaves it: the files, and a lock of a dead owner. */
async function corpseOf(folder: string): Promise<string> {
  const corpse = await mkdtemp(join(root, 'corpse-'));
  await cp(folder, corpse, { recursive: true });
  const lock = { pid: process.pid, host: hostname(), start: 'an earlier life', nonce: 'n' };
  writeFileSync(join(corpse, 'lock'), JSON.stringify(lock));
  return corpse;
}

describeJournal('files', async () => {
  let folder = await mkdtemp(join(root, 'promise-'));
  return {
    open: async () => createJournal({ folder }),
    kill: async (journal) => {
      folder = await corpseOf(folder);
      await journal.close();
    },
  };
});

let folder: string;
let journal: Journal;

beforeEach(async () => {
  folder = await mkdtemp(join(root, 'test-'));
  journal = createJournal({ folder });
  await journal.replay();
  return async () => journal.close();
});

const recoverFrom = async (corpse: string): Promise<{ records: ReadonlyArray<JournalRecord>; errors: number }> => {
  const log = createMemoryLog();
  const next = createJournal({ folder: corpse, log });
  const records = await next.replay();
  await next.close();
  return { records, errors: log.lines.filter(({ level }) => level === 'error').length };
};

describe('a torn tail', () => {
  test('is rejected by its checksum wherever the last record was torn, and nothing before it is lost', async () => {
    const records = [reservationRecord('a'), rowRecord('a'), reservationRecord('b')];
    for (const record of records) await journal.append(record);
    const [name = ''] = logsIn(folder);
    const whole = readFileSync(join(folder, name));
    const last = whole.lastIndexOf('\n', whole.length - 2) + 1;
    const corpse = await corpseOf(folder);
    for (let length = last; length <= whole.length; length += 1) {
      writeFileSync(join(corpse, name), whole.subarray(0, length));
      const { records: left, errors } = await recoverFrom(corpse);
      // A record without its line feed is still whole.
      expect(left, `torn after ${length - last} bytes`).toEqual(
        length >= whole.length - 1 ? records : records.slice(0, 2),
      );
      expect(errors).toBe(0);
    }
  });

  test('that a power loss filled with zeros is rejected too', async () => {
    await journal.append(reservationRecord('a'));
    const corpse = await corpseOf(folder);
    const [name = ''] = logsIn(corpse);
    writeFileSync(join(corpse, name), Buffer.alloc(4096), { flag: 'a' });
    expect((await recoverFrom(corpse)).records).toEqual([reservationRecord('a')]);
  });

  test('does not touch what the next process writes', async () => {
    await journal.append(reservationRecord('a'));
    await journal.append(reservationRecord('b'));
    const corpse = await corpseOf(folder);
    const [name = ''] = logsIn(corpse);
    truncateSync(join(corpse, name), statSync(join(corpse, name)).size - 9);
    const next = createJournal({ folder: corpse });
    expect((await next.replay()).map(idOf)).toEqual(['a']);
    await next.append(reservationRecord('c'));
    const again = await corpseOf(corpse);
    await next.close();
    expect((await recoverFrom(again)).records.map(idOf)).toEqual(['a', 'c']);
  });
});

test('any single damaged byte costs at most its own line and the next one, and is reported', async () => {
  const ids = ['a', 'b', 'c'];
  for (const id of ids) await journal.append({ type: 'release', id });
  const corpse = await corpseOf(folder);
  const [name = ''] = logsIn(corpse);
  const whole = readFileSync(join(corpse, name));
  for (let at = 0; at < whole.length; at += 1) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 0x15;
    writeFileSync(join(corpse, name), damaged);
    const { records } = await recoverFrom(corpse);
    expect(records.length, `byte ${at}`).toBeGreaterThanOrEqual(1);
    for (const record of records) expect(ids).toContain(idOf(record));
  }
});

describe('a dropped record', () => {
  const work = async (box: Journal, from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at += 50) {
      const ids = Array.from({ length: 50 }, (_, index) => `id-${at + index}`);
      await Promise.all(ids.flatMap((id) => [box.append(reservationRecord(id)), box.append(rowRecord(id))]));
      box.drop(ids);
    }
  };

  test('is compacted away: a journal stays small however long it runs, and keeps open records', async () => {
    await journal.close();
    const slack = 20_000;
    const box = createJournal({ folder, slack });
    await box.replay();
    await box.append(reservationRecord('open'));
    await work(box, 0, 5000);
    // About 5 MB were written; compaction runs beside the writes.
    await vi.waitFor(async () => {
      await work(box, 5000, 5050);
      expect(bytesIn(folder)).toBeLessThan(100_000);
    }, 10_000);
    await box.close();
    expect((await recoverFrom(folder)).records.map(idOf)).toContain('open');
  });

  test('is the progress of a stream that a later one replaces, however long the stream runs', async () => {
    await journal.close();
    const box = createJournal({ folder, slack: 20_000 });
    await box.replay();
    await box.append(reservationRecord('open'));
    let cost = 0n;
    const stream = async (): Promise<void> => {
      const costs = Array.from({ length: 50 }, (_, index) => cost + BigInt(index) + 1n);
      await Promise.all(costs.map((cost) => box.append({ type: 'progress', id: 'open', cost })));
      cost += 50n;
    };
    for (let seconds = 0; seconds < 3600; seconds += 50) await stream();
    await vi.waitFor(async () => {
      await stream();
      expect(bytesIn(folder)).toBeLessThan(100_000);
    }, 10_000);
    await box.close();
    const { records } = await recoverFrom(folder);
    expect(records).toContainEqual(reservationRecord('open'));
    expect(records.findLast(({ type }) => type === 'progress')).toEqual({ type: 'progress', id: 'open', cost });
  });

  test('is compacted away from the segments of many earlier processes too', async () => {
    let corpse = folder;
    await journal.append(reservationRecord('open'));
    for (let life = 0; life < 12; life += 1) {
      corpse = await corpseOf(corpse);
      const next = createJournal({ folder: corpse });
      await next.replay();
      await next.append(reservationRecord(`life-${life}`));
      next.drop([`life-${life}`]);
      await next.close();
    }
    expect(logsIn(corpse).length).toBeLessThanOrEqual(9);
    expect((await recoverFrom(corpse)).records.map(idOf)).toContain('open');
  });

  test('is compacted away beside a torn line and one without a line feed, and open records stay as written', async () => {
    await journal.append(rowRecord('without its end'));
    const corpse = await corpseOf(folder);
    const [name = ''] = logsIn(corpse);
    truncateSync(join(corpse, name), statSync(join(corpse, name)).size - 1);
    let isFull = false;
    const write = (descriptor: number, bytes: Uint8Array, from: number): number => {
      if (isFull) throw new Error(`no space left after ${writeSync(descriptor, bytes.subarray(0, 30))} bytes`);
      return writeSync(descriptor, bytes, from);
    };
    const box = createJournal({ folder: corpse, slack: 2000, write });
    await box.replay();
    await box.append(reservationRecord('open'));
    isFull = true;
    await expect(box.append(reservationRecord('torn'))).rejects.toThrow('writing the journal');
    isFull = false;
    await box.append(rowRecord('open'));
    await work(box, 0, 500);
    await vi.waitFor(async () => {
      await work(box, 500, 550);
      expect(bytesIn(corpse)).toBeLessThan(50_000);
    }, 10_000);
    await box.close();
    const { records, errors } = await recoverFrom(corpse);
    expect(errors).toBe(0);
    const open = [rowRecord('without its end'), reservationRecord('open'), rowRecord('open')];
    for (const record of open) expect(records).toContainEqual(record);
  });

  test('is compacted through a draft, which is ignored when half written', async () => {
    await journal.append(reservationRecord('a'));
    const corpse = await corpseOf(folder);
    writeFileSync(join(corpse, 'journal-000000002.log.part'), 'half');
    expect((await recoverFrom(corpse)).records.map(idOf)).toEqual(['a']);
    expect(readdirSync(corpse).filter((name) => name.endsWith('.part'))).toEqual([]);
  });
});

test('all records of a tick are one write', async () => {
  await journal.close();
  let writes = 0;
  const write = (descriptor: number, bytes: Uint8Array, from: number): number => {
    writes += 1;
    return writeSync(descriptor, bytes, from);
  };
  journal = createJournal({ folder, write });
  await Promise.all(Array.from({ length: 200 }, (_, index) => journal.append(reservationRecord(`id-${index}`))));
  expect(writes).toBe(1);
});

test('an append after the close is rejected, not lost', async () => {
  await journal.close();
  await expect(journal.append(reservationRecord('a'))).rejects.toThrow('closed');
});

test('an append that the disk refuses is rejected, and the next one is whole', async () => {
  await journal.close();
  let isFull = false;
  const write = (descriptor: number, bytes: Uint8Array, from: number): number => {
    if (isFull && from > 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    return writeSync(descriptor, isFull ? bytes.subarray(0, 30) : bytes, from);
  };
  journal = createJournal({ folder, write });
  await journal.append(reservationRecord('a'));
  isFull = true;
  await expect(journal.append(reservationRecord('b'))).rejects.toThrow(`writing the journal in ${folder}`);
  isFull = false;
  await journal.append(reservationRecord('c'));
  const corpse = await corpseOf(folder);
  expect((await recoverFrom(corpse)).records.map(idOf)).toEqual(['a', 'c']);
});

test('a discarded journal leaves no file, also where a compaction writes another one late', async () => {
  await journal.close();
  const { timer, advance } = createManualTime();
  journal = createJournal({ folder, timer });
  await journal.append(reservationRecord('a'));
  journal.discard();
  expect(logsIn(folder)).toEqual([]);
  writeFileSync(join(folder, 'journal-000000002.log'), 'late');
  await advance(1000);
  expect(logsIn(folder)).toEqual([]);
});

test('a discarded journal that the disk keeps is an error that says what a restart would do', async () => {
  const log = createMemoryLog();
  const removed = mkdtempSync(join(root, 'gone-'));
  const box = createJournal({ folder: removed, log, timer: createManualTime().timer });
  // A folder in place of a segment stands for what cannot be deleted.
  mkdirSync(join(removed, 'journal-000000001.log'));
  box.discard();
  expect(log.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('cannot be deleted') }]);
  await box.close();
});

test('a failing sync is logged once, and its recovery once', async () => {
  const folder = mkdtempSync(join(root, 'unsynced-'));
  const log = createMemoryLog();
  const { timer, advance } = createManualTime();
  const journal = createJournal({ folder, log, timer });
  const lock = readFileSync(join(folder, 'lock'));
  rmSync(join(folder, 'lock'));
  await advance(3000);
  writeFileSync(join(folder, 'lock'), lock);
  await advance(2000);
  expect(log.lines.map(({ level, message }) => [level, message])).toEqual([
    ['error', expect.stringContaining('the journal cannot be synced')],
    ['info', 'the journal is synced again'],
  ]);
  await journal.close();
});

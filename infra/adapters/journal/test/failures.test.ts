import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { reasonAndCausesOf } from '#core/failure/error-text.ts';
import type { Journal } from '#core/ports/journal.ts';
import { reservationRecord, rowRecord } from '#core/ports/test/journal.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { createMetrics } from '../../telemetry/metrics.ts';
import { createJournal, type JournalOptions } from '../journal.ts';
import { openFile } from '../open-segments.ts';

const root = mkdtempSync(join(tmpdir(), 'journal-failures-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const INJECTED = 'the disk fails';

/**
 * A disk that counts its steps, and knows which files are open and which of them have data that a power loss would
 * take.
 */
function createDisk(fails: (step: string, count: number) => boolean = () => false) {
  let [count, failures] = [0, 0];
  const steps: string[] = [];
  const opened = new Map<number, string>();
  const unsynced = new Set<string>();
  const pending = new Set<Promise<void>>();
  const track = (work: Promise<void>): Promise<void> => {
    pending.add(work);
    return work.finally(() => pending.delete(work));
  };
  const step = (name: string): void => {
    steps.push(name);
    count += 1;
    if (!fails(name, count)) return;
    failures += 1;
    throw new Error(INJECTED);
  };
  const options: Pick<JournalOptions, 'open' | 'write'> = {
    async open(path) {
      step('open');
      const file = await open(path, 'a');
      const { fd } = file;
      const name = basename(path);
      opened.set(fd, name);
      const datasync = async (): Promise<void> => {
        step('datasync');
        await file.datasync();
        unsynced.delete(name);
      };
      const close = async (): Promise<void> => {
        opened.delete(fd);
        await file.close();
        step('close');
      };
      return { fd, datasync: () => track(datasync()), close: () => track(close()) };
    },
    write(descriptor, bytes, from) {
      step('write');
      const length = writeSync(descriptor, bytes, from);
      unsynced.add(opened.get(descriptor) ?? '');
      return length;
    },
  };
  /** Resolves when no call is under way. */
  const settled = async (): Promise<void> => {
    do {
      await Promise.allSettled(pending);
      await new Promise((resolve) => setImmediate(resolve));
    } while (pending.size > 0);
  };
  return { options, steps, opened, unsynced, settled, failures: () => failures };
}

const SECOND = 1000;

const idOf = (record: { readonly type: string }): string =>
  'row' in record ? (record.row as { id: string }).id : (record as unknown as { id: string }).id;

/** Appends, syncs, compacts, and leaves one open record. Answers what was acknowledged and what was refused. */
async function work(journal: Journal, fire: () => Promise<void>): Promise<{ kept: string[]; reports: string[] }> {
  const kept: string[] = [];
  const reports: string[] = [];
  const append = async (id: string): Promise<void> => {
    try {
      await journal.append(reservationRecord(id));
      kept.push(id);
    } catch (error) {
      reports.push(reasonAndCausesOf(error));
    }
  };
  await append('first');
  await fire();
  for (let round = 0; round < 4; round += 1) {
    const ids = Array.from({ length: 20 }, (_, index) => `round-${round}-${index}`);
    await Promise.all(
      ids.flatMap((id) => [journal.append(reservationRecord(id)), journal.append(rowRecord(id))]),
    ).catch((error) => reports.push(reasonAndCausesOf(error)));
    journal.drop(ids);
    await append(`open-${round}`);
    await fire();
  }
  await append('last');
  return { kept, reports };
}

describe('whichever step of the disk fails, once,', () => {
  test('no acknowledged record is lost, everything is synced a second later, and a close leaves nothing open or locked', async () => {
    const whole = createDisk();
    await course(whole);
    expect(whole.steps.filter((name) => name === 'open').length).toBeGreaterThan(1);
    for (let at = 1; at <= whole.steps.length; at += 1)
      await course(
        createDisk((_, count) => count === at),
        whole.steps[at - 1],
      );
  });

  async function course(disk: ReturnType<typeof createDisk>, failing?: string): Promise<void> {
    const folder = mkdtempSync(join(root, 'law-'));
    const log = createMemoryLog();
    const time = createManualTime();
    const fire = async (): Promise<void> => {
      await time.advance(SECOND);
      await disk.settled();
    };
    const journal = createJournal({ folder, log, timer: time.timer, slack: 1500, ...disk.options });
    await journal.replay();
    const { kept, reports } = await work(journal, fire);
    expect(time.armed(), failing).toBe(1);
    await fire();
    await fire();
    const present = new Set(readdirSync(folder));
    expect(
      [...disk.unsynced].filter((name) => present.has(name)),
      failing,
    ).toEqual([]);
    await journal.close().catch((error) => reports.push(reasonAndCausesOf(error)));
    expect(disk.opened, failing).toEqual(new Map());
    expect(time.armed(), failing).toBe(0);
    const next = createJournal({ folder, log });
    const left = new Set((await next.replay()).map(idOf));
    expect(
      kept.filter((id) => !left.has(id)),
      failing,
    ).toEqual([]);
    await next.close();
    // Compactions run beside the rest, so that another run may have fewer steps.
    if (disk.failures() === 0) return;
    const lines = log.lines.map(({ fields }) => JSON.stringify(fields));
    expect(
      [...lines, ...reports].filter((line) => line.includes(INJECTED)),
      failing,
    ).not.toEqual([]);
  }
});

describe('a sync', () => {
  test('that fails is repeated until it succeeds, also without another write', async () => {
    let isFailing = true;
    const metrics = createMetrics();
    const disk = createDisk((name) => isFailing && name === 'datasync');
    const { timer, advance } = createManualTime();
    const log = createMemoryLog();
    const journal = createJournal({ folder: mkdtempSync(join(root, 'sync-')), log, metrics, timer, ...disk.options });
    await journal.append(reservationRecord('a'));
    for (let second = 0; second < 3; second += 1) {
      await advance(SECOND);
      await disk.settled();
    }
    expect(log.lines).toHaveLength(1);
    expect(await metrics.render()).toContain('gateway_operator_ledger_failures_total{step="sync"} 3');
    isFailing = false;
    await advance(SECOND);
    await disk.settled();
    expect(disk.unsynced.size).toBe(0);
    expect(log.lines.map(({ message }) => message).at(-1)).toBe('the journal is synced again');
    await journal.close();
  });

  test('that hangs is reported, and the lock is touched meanwhile', async () => {
    const folder = mkdtempSync(join(root, 'hang-'));
    let release = (): void => undefined;
    const hung = new Promise<void>((resolve) => {
      release = resolve;
    });
    const disk = createDisk();
    const opening: JournalOptions['open'] = async (path) => {
      const file = await disk.options.open?.(path);
      if (file === undefined) throw new Error('no file');
      return { ...file, datasync: () => hung };
    };
    const { timer, advance } = createManualTime();
    const log = createMemoryLog();
    const journal = createJournal({ folder, log, timer, ...disk.options, open: opening });
    await journal.append(reservationRecord('a'));
    await advance(2 * SECOND);
    expect(log.lines).toMatchObject([{ level: 'error', fields: { why: expect.stringContaining('has not ended') } }]);
    rmSync(join(folder, 'lock'));
    await advance(SECOND);
    expect(log.lines).toHaveLength(2);
    release();
    await journal.close();
  });
});

test('a segment whose compaction failed is synced, like the one that is written', async () => {
  const folder = mkdtempSync(join(root, 'compaction-'));
  const disk = createDisk();
  const { timer, advance } = createManualTime();
  const log = createMemoryLog();
  const journal = createJournal({ folder, log, timer, slack: 0, ...disk.options });
  await journal.replay();
  // A folder in place of the draft stands for a disk that is full.
  mkdirSync(join(folder, 'journal-000000002.log.part'));
  await journal.append(reservationRecord('open'));
  await journal.append(rowRecord('done'));
  for (const id of ['b', 'c', 'd']) await journal.append(rowRecord(id));
  journal.drop(['done', 'b', 'c', 'd']);
  await journal.append(reservationRecord('other'));
  await vi.waitFor(() => expect(log.lines).toMatchObject([{ message: 'the journal could not be compacted' }]));
  await advance(SECOND);
  await disk.settled();
  expect([...disk.unsynced]).toEqual([]);
  expect(disk.steps.filter((name) => name === 'close')).toHaveLength(1);
  await journal.close();
  expect(disk.opened.size).toBe(0);
});

test('a close that cannot sync releases the folder, and is reported', async () => {
  const folder = mkdtempSync(join(root, 'close-'));
  const disk = createDisk((name) => name === 'datasync');
  const journal = createJournal({ folder, timer: createManualTime().timer, ...disk.options });
  await journal.append(reservationRecord('a'));
  await expect(journal.close()).rejects.toThrow(INJECTED);
  expect(disk.opened.size).toBe(0);
  expect(readdirSync(folder)).toEqual(['journal-000000001.log']);
  expect(readFileSync(join(folder, 'journal-000000001.log'), 'utf8')).toContain('"id":"a"');
});

test('a disk that does not answer when a file is opened refuses the record: no reply waits for it for ever', async () => {
  const folder = mkdtempSync(join(root, 'open-'));
  const disk = createDisk();
  const { timer, advance } = createManualTime();
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const opening: JournalOptions['open'] = async (path) => {
    asked.resolve();
    await answered.promise;
    return (disk.options.open ?? openFile)(path);
  };
  const journal = createJournal({ folder, timer, ...disk.options, open: opening });
  const refused = journal.append(reservationRecord('a')).catch(reasonAndCausesOf);
  await asked.promise;
  await advance(3 * SECOND);
  expect(await refused).toContain('did not answer in 2000 ms');
  // What is opened too late is closed.
  answered.resolve();
  await vi.waitFor(() => expect(disk.steps).toEqual(['open', 'close']));
  expect(disk.opened.size).toBe(0);
  await journal.close();
});

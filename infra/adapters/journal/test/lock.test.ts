import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { Journal } from '#core/ports/journal.ts';
import { reservationRecord } from '#core/ports/test/journal.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { createManualTime } from '../../../../test/doubles/time.ts';
import { startZombie } from '../../../../test/support/suspended-process.ts';
import { createJournal, type JournalOptions } from '../journal.ts';
import { FolderInUse } from '../lock.ts';
import { openFile } from '../open-segments.ts';

const root = mkdtempSync(join(tmpdir(), 'journal-lock-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder: string;
let journal: Journal;

beforeEach(async () => {
  folder = await mkdtemp(join(root, 'test-'));
  journal = createJournal({ folder });
  await journal.replay();
  return async () => journal.close();
});

describe('a folder', () => {
  test('belongs to one process: the error of a second one names the owner', () => {
    expect(() => createJournal({ folder })).toThrow(FolderInUse);
    expect(() => createJournal({ folder })).toThrow(`process ${process.pid} on ${hostname()}`);
  });

  test('is free again after a clean stop', async () => {
    await journal.close();
    const next = createJournal({ folder });
    expect(await next.replay()).toEqual([]);
    await next.close();
  });

  const owner = { pid: 2 ** 22 + 1, host: hostname(), start: '1', nonce: 'n' };
  test.each([
    ['a process that is gone', JSON.stringify(owner)],
    ['a restarted container’s same pid', JSON.stringify({ ...owner, pid: process.pid })],
    ['a crash in the middle of writing it', '{"pid":'],
    ['no process (an empty file)', ''],
  ])('whose lock was left by %s is taken over', async (_, lock) => {
    const left = await mkdtemp(join(root, 'lock-'));
    writeFileSync(join(left, 'lock'), lock);
    await createJournal({ folder: left }).close();
    expect(readdirSync(left)).toEqual([]);
  });

  test('whose owner was killed, and whose parent has not noticed, is taken over', async () => {
    const zombie = await startZombie();
    const left = await mkdtemp(join(root, 'lock-'));
    writeFileSync(join(left, 'lock'), JSON.stringify({ ...owner, ...zombie }));
    await createJournal({ folder: left }).close();
    expect(readdirSync(left)).toEqual([]);
  });

  test('of another machine is taken over when its owner has not touched it for 15 s, not before', async () => {
    const left = await mkdtemp(join(root, 'lock-'));
    const lock = join(left, 'lock');
    writeFileSync(lock, JSON.stringify({ ...owner, host: 'another' }));
    expect(() => createJournal({ folder: left })).toThrow('on another');
    const touchedAt = new Date(Date.now() - 16_000);
    utimesSync(lock, touchedAt, touchedAt);
    await createJournal({ folder: left }).close();
  });

  test('that another process has taken over is left: nothing is written, compacted or deleted there any more', async () => {
    const log = createMemoryLog();
    const { timer, advance } = createManualTime();
    const left = await mkdtemp(join(root, 'stolen-'));
    const open: JournalOptions['open'] = async (path) => {
      const file = await openFile(path);
      return { fd: file.fd, close: () => file.close(), datasync: async () => undefined };
    };
    const paused = createJournal({ folder: left, log, timer, slack: 0, open });
    await paused.replay();
    await paused.append(reservationRecord('before'));
    writeFileSync(join(left, 'lock'), JSON.stringify({ ...owner, host: 'thief' }));
    const files = () => readdirSync(left).map((name) => [name, readFileSync(join(left, name), 'utf8')]);
    const found = files();
    await advance(3000);
    await expect(paused.append(reservationRecord('after'))).rejects.toThrow('process 4194305 on thief has taken over');
    paused.discard();
    paused.drop(['before']);
    await paused.close();
    expect(files()).toEqual(found);
    expect(log.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('has taken over') }]);
  });

  test('is created when missing', async () => {
    const deep = join(root, 'not', 'there', 'yet');
    await createJournal({ folder: deep }).close();
    expect(readdirSync(deep)).toEqual([]);
  });
});

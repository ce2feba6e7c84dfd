import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { FolderInUse } from '#adapters/journal/lock.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { openJournal } from '../journal.ts';

const root = mkdtempSync(join(tmpdir(), 'open-journal-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const log = createMemoryLog();
const metrics = createMetrics();

describe('the journal of a gateway', () => {
  /** A file stands where the folder should be: a disk that refuses everything. */
  const unusable = (name: string): string => {
    writeFileSync(join(root, name), '');
    return join(root, name);
  };

  test('on a disk that cannot be used takes no record, so that the gateway continues without one', async () => {
    const journal = openJournal({ folder: unusable('shared'), log, metrics, isShared: true });
    expect(await journal.replay()).toEqual([]);
    await expect(journal.append({ type: 'account', id: 'a' })).rejects.toThrow('opening the journal');
    journal.drop(['a']);
    journal.discard();
    await journal.close();
    expect(readdirSync(root)).toEqual(['shared']);
  });

  test('beside a store in memory is needed: nothing else keeps the money', () => {
    expect(() => openJournal({ folder: unusable('alone'), log, metrics, isShared: false })).toThrow();
  });

  test('of another process is never gone without', async () => {
    const folder = mkdtempSync(join(root, 'used-'));
    const first = openJournal({ folder, log, metrics, isShared: true });
    expect(() => openJournal({ folder, log, metrics, isShared: true })).toThrow(FolderInUse);
    await first.close();
  });
});

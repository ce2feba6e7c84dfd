import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { FolderInUse } from '#adapters/journal/lock.ts';
import { createMetrics } from '#adapters/telemetry/metrics.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { openOutbox } from '../journal.ts';

const root = mkdtempSync(join(tmpdir(), 'open-outbox-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const log = createMemoryLog();
const metrics = createMetrics();

describe('the outbox of a gateway', () => {
  /** A file stands where the folder should be: a disk that refuses everything. */
  const unusable = (name: string): string => {
    writeFileSync(join(root, name), '');
    return join(root, name);
  };

  test('on a disk that cannot be used takes no record, so that the gateway continues without one', async () => {
    const outbox = openOutbox({ folder: unusable('shared'), log, metrics, isShared: true });
    expect(await outbox.replay()).toEqual([]);
    await expect(outbox.append({ type: 'account', id: 'a' })).rejects.toThrow('opening the outbox');
    outbox.done(['a']);
    outbox.discard();
    await outbox.close();
    expect(readdirSync(root)).toEqual(['shared']);
  });

  test('beside a store in memory is needed: nothing else keeps the money', () => {
    expect(() => openOutbox({ folder: unusable('alone'), log, metrics, isShared: false })).toThrow();
  });

  test('of another process is never gone without', async () => {
    const folder = mkdtempSync(join(root, 'used-'));
    const first = openOutbox({ folder, log, metrics, isShared: true });
    expect(() => openOutbox({ folder, log, metrics, isShared: true })).toThrow(FolderInUse);
    await first.close();
  });
});

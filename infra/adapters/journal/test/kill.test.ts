import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { startChild } from '../../../../test/support/child.ts';
import { createJournal } from '../journal.ts';

const root = mkdtempSync(join(tmpdir(), 'journal-kill-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/**
 * A program that appends and compacts as fast as it can, and prints which ids were acknowledged and which it then
 * called done.
 */
const WRITER = `
  import { writeSync } from 'node:fs';
  const [, folder, from] = process.argv;
  const { createJournal } = await import(${JSON.stringify(join(import.meta.dirname, '../journal.ts'))});
  const journal = createJournal({ folder, slack: 5000 });
  await journal.replay();
  for (let at = 0; ; at += 1) {
    const ids = Array.from({ length: 20 }, (_, index) => [from, at, index].join('-'));
    await Promise.all(ids.map((id) => journal.append({ type: 'progress', id, cost: BigInt(at) })));
    const done = ids.filter((_, index) => index % 10 !== 0);
    const open = ids.filter((_, index) => index % 10 === 0);
    writeSync(1, open.join('\\n') + '\\n');
    journal.drop(done);
  }
`;

/** The number of acknowledged records before it may be killed. */
const FEW = 3;
const linesIn = (text: string): number => text.split('\n').length - 1;

async function writeUntilKilled(folder: string, from: string, millis: number): Promise<string[]> {
  const child = startChild(process.execPath, ['--input-type=module', '-e', WRITER, folder, from]);
  await child.until(() => linesIn(child.stdout()) >= FEW);
  await pause(millis);
  const { stdout } = await child.end('SIGKILL');
  return stdout.slice(0, stdout.lastIndexOf('\n')).split('\n');
}

test('kill -9 loses no acknowledged record, however often and whenever it happens', async () => {
  const open = new Set<string>();
  for (const [life, millis] of [3, 11, 17, 29, 40].entries()) {
    const acknowledged = await writeUntilKilled(root, `life${life}`, millis);
    for (const id of acknowledged) open.add(id);
  }
  const journal = createJournal({ folder: root });
  const left = new Set((await journal.replay()).map((record) => ('row' in record ? record.row.id : record.id)));
  await journal.close();
  expect(open.size).toBeGreaterThan(10);
  expect([...open].filter((id) => !left.has(id))).toEqual([]);
}, 30_000);

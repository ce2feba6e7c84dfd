import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';
import { openLogFile } from './log-file.ts';

test('lines are written in their order, all of them before a close returns', async () => {
  const file = join(temporaryFolder(), 'stack.log');
  const log = openLogFile(file);
  for (let i = 0; i < 100; i += 1) log.write(`${i}\n`);
  await log.close();
  log.write('last\n');
  await log.close();
  expect(readFileSync(file, 'utf8')).toBe(`${Array.from({ length: 100 }, (_, i) => i).join('\n')}\nlast\n`);
});

test('a log that cannot be written goes to stderr, and says so once', async () => {
  const written: string[] = [];
  const stderr = vi.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
  const log = openLogFile(join(temporaryFolder(), 'none', 'stack.log'));
  log.write('one\n');
  await log.close();
  log.write('two\n');
  await log.close();
  stderr.mockRestore();
  expect(written).toEqual([expect.stringContaining('cannot be written: '), 'one\n', 'two\n']);
});

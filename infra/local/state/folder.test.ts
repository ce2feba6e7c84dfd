// Is a folder that cannot hold the state refused in a sentence, at once?
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { UsageError } from '../options.ts';
import { unusable } from './folder.ts';
import { openState } from './state.ts';

let base: string;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'state-'));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

const refusal = (folder: string) =>
  openState(folder, false).then(
    () => 'taken',
    (error: Error) => (error instanceof UsageError ? error.message : `not in words: ${error.message}`),
  );
const NAME = /Name a folder that you may write to with --state DIR\.$/;

describe('a state folder', () => {
  test.runIf(process.platform === 'linux')(
    'below /proc, where nothing can be made, is refused and nothing spins',
    async () => {
      expect(await refusal('/proc/x/y')).toMatch(
        /^--state: \/proc\/x\/y cannot be used: .*\(at \/proc\/x\)\. Name a folder/,
      );
    },
  );

  test('that is a file, or below one, is refused by its name', async () => {
    const file = join(base, 'file');
    writeFileSync(file, '');
    expect(await refusal(file)).toMatch(/^--state: .*\/file is a file, not a folder\. /);
    expect(await refusal(join(file, 'below'))).toMatch(
      /^--state: .*\/file.* is a file, not a folder|a part of it is a file/,
    );
  });

  test('with a name that is too long, or links in a circle, is refused', async () => {
    expect(await refusal(join(base, 'x'.repeat(300)))).toMatch(/its name is too long/);
    symlinkSync(join(base, 'b'), join(base, 'a'));
    symlinkSync(join(base, 'a'), join(base, 'b'));
    expect(await refusal(join(base, 'a', 'c'))).toMatch(/its links lead in a circle/);
  });

  test('that this user may not write to is refused', async ({ skip }) => {
    skip(process.getuid?.() === 0, 'root may write everywhere');
    const closed = join(base, 'closed');
    mkdirSync(closed, { mode: 0o500 });
    expect(await refusal(closed)).toMatch(/you may not write there/);
    expect(await refusal(join(closed, 'below'))).toMatch(/you may not write there/);
  });

  test.each(['EACCES', 'EROFS', 'ENOSPC', 'EIO'])('says what is wrong and what to do: %s', (code) => {
    const error = Object.assign(new Error('raw'), { code, path: '/data/state.json.new' });
    const { message } = unusable('/data', error);
    expect(message).toMatch(/^--state: \/data cannot be used: .* \(at \/data\/state\.json\.new\)\. /);
    expect(message).toMatch(NAME);
    expect(message).not.toContain('raw');
  });

  test('that is not there is made, with those above it', async () => {
    const folder = join(base, 'deep/er/est');
    const state = await openState(folder, false);
    expect(statSync(folder).isDirectory()).toBe(true);
    state.release();
  });
});

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { UsageError } from '../../options.ts';
import { openState } from '../../state/state.ts';

const starters: ChildProcess[] = [];
afterEach(() => {
  for (const starter of starters.splice(0)) starter.kill('SIGKILL');
});

/** Opens the state of a folder at a given instant, says what came of it, and lives on. */
const STARTER = `
const [state, folder, instant] = process.argv.slice(1);
const { openState } = await import(state);
while (Date.now() < Number(instant));
await openState(folder, false).then(() => console.log('opened'), ({ message }) => console.log(message));
setTimeout(() => undefined, 600_000);
`;

function openAt(folder: string, instant: number): Promise<string> {
  const args = [
    '--input-type=module',
    '-e',
    STARTER,
    join(import.meta.dirname, '../../state/state.ts'),
    folder,
    `${instant}`,
  ];
  const starter = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  starters.push(starter);
  return new Promise((resolve) => starter.stdout.once('data', (chunk) => resolve(String(chunk).trim())));
}

test.each([
  ['that is new', () => undefined],
  [
    'whose last stack was killed',
    (folder: string) =>
      writeFileSync(
        join(folder, 'lock'),
        JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), start: '1', nonce: 'n' }),
      ),
  ],
])('of many starts in the same moment on a folder %s, exactly one gets it', async (_, prepare) => {
  const folder = temporaryFolder();
  prepare(folder);
  const instant = Date.now() + 3_000;
  const results = await Promise.all(Array.from({ length: 4 }, () => openAt(folder, instant)));
  expect(results.sort()).toEqual([
    ...Array.from({ length: 3 }, () => expect.stringContaining(`Another stack runs on ${folder}.`)),
    'opened',
  ]);
});

const refusal = (folder: string) =>
  openState(folder, false).then(
    () => 'taken',
    (error: Error) => (error instanceof UsageError ? error.message : `not in words: ${error.message}`),
  );

describe('a state folder', () => {
  const base = temporaryFolder();

  test.runIf(process.platform === 'linux')(
    'below /proc, where nothing can be made, is refused and nothing spins',
    async () => {
      expect(await refusal('/proc/x/y')).toMatch(
        /^--state: Invalid value: "\/proc\/x\/y": must be a folder .*: ENOENT/,
      );
    },
  );

  test('that is a file, or below one, is refused by its name', async () => {
    const file = join(base, 'file');
    writeFileSync(file, '');
    expect(await refusal(file)).toMatch(/\/file": must be a folder that you can write to: ENOTDIR: not a directory/);
    expect(await refusal(join(file, 'below'))).toMatch(/ENOTDIR: not a directory/);
  });

  test('with a name that is too long, or links in a circle, is refused', async () => {
    expect(await refusal(join(base, 'x'.repeat(300)))).toMatch(/ENAMETOOLONG: name too long/);
    symlinkSync(join(base, 'b'), join(base, 'a'));
    symlinkSync(join(base, 'a'), join(base, 'b'));
    expect(await refusal(join(base, 'a', 'c'))).toMatch(/ELOOP: too many symbolic links/);
  });

  test('that this user may not write to is refused', async ({ skip }) => {
    skip(process.getuid?.() === 0, 'root may write everywhere');
    const closed = join(base, 'closed');
    mkdirSync(closed, { mode: 0o500 });
    expect(await refusal(closed)).toMatch(/EACCES: permission denied/);
    expect(await refusal(join(closed, 'below'))).toMatch(/EACCES: permission denied/);
  });

  test('with files of others is refused by their names; what an earlier stack left there is not', async () => {
    const folder = join(base, 'used');
    mkdirSync(join(folder, 'children'), { recursive: true });
    writeFileSync(join(folder, 'stack.log'), '');
    (await openState(folder, false)).release();
    const foreign = join(base, 'foreign');
    mkdirSync(join(foreign, 'children'), { recursive: true });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) writeFileSync(join(foreign, name), '');
    expect(await refusal(foreign)).toContain('but holds other files (a, b, c, d, e and 1 more). Name another folder.');
  });

  test('that is not there is made, with those above it', async () => {
    const folder = join(base, 'deep/er/est');
    const state = await openState(folder, false);
    expect(statSync(folder).isDirectory()).toBe(true);
    state.release();
  });
});

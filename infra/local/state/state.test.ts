import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/temporary-folder.ts';

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
  const args = ['--input-type=module', '-e', STARTER, join(import.meta.dirname, 'state.ts'), folder, `${instant}`];
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

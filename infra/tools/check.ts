// `npm run check`: everything that a machine can check in a minute. `--without-tests` leaves the unit tests to an `npm test` that follows.
import { spawn } from 'node:child_process';

interface Step {
  readonly name: string;
  readonly command: string;
  readonly args: ReadonlyArray<string>;
}

/** Each of them uses one core for most of its time, so they run side by side. */
const QUICK: ReadonlyArray<Step> = [
  { name: 'format and lint', command: 'biome', args: ['ci', '--error-on-warnings', '.'] },
  { name: 'types', command: 'tsc', args: [] },
  { name: 'generated files', command: 'node', args: ['infra/tools/generate.ts', '--check'] },
  { name: 'bundle budgets', command: 'node', args: ['infra/tools/build.ts', '--check'] },
];

/** Every core is theirs. The import rule is one of them. */
const TESTS: Step = { name: 'unit and golden tests', command: 'vitest', args: ['run', '--project', 'unit'] };

const asked = process.argv.slice(2);
if (asked.some((word) => word !== '--without-tests')) {
  process.stderr.write(`npm run check takes --without-tests and nothing else, not ${asked.join(' ')}\n`);
  process.exit(2);
}

// All of them run, so that one report shows everything that is wrong.
const started = Date.now();
const failed = [...(await Promise.all(QUICK.map(check))), ...(asked.length === 0 ? [await check(TESTS)] : [])].filter(
  (name) => name !== undefined,
);
const seconds = secondsSince(started);
process.stdout.write(failed.length === 0 ? `all in order (${seconds} s)\n` : `not in order: ${failed.join(', ')}\n`);
process.exit(failed.length === 0 ? 0 : 1);

/** Reports the step, with its output where it failed; answers its name then. */
async function check({ name, command, args }: Step): Promise<string | undefined> {
  const began = Date.now();
  const { code, output } = await run(command, args);
  process.stdout.write(`${code === 0 ? 'ok  ' : 'FAIL'}  ${name} (${secondsSince(began)} s)\n`);
  if (code === 0) return undefined;
  process.stdout.write(`${output.trim()}\n\n`);
  return name;
}

function secondsSince(began: number): string {
  return ((Date.now() - began) / 1000).toFixed(1);
}

function run(command: string, args: ReadonlyArray<string>): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    // npm scripts have node_modules/.bin first on the PATH.
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk;
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', (error) => resolve({ code: 1, output: `${command}: ${error.message}` }));
    child.once('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

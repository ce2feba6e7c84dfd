// Is the tree in order? Everything a machine can check before the world's tests: `npm run check`. With `--without-tests` all but the
// unit tests, for whoever runs `npm test` next.
import { spawn } from 'node:child_process';

const TESTS = 'unit and golden tests';

/** In this order; all of them run, so one report shows everything that is wrong. */
const STEPS: ReadonlyArray<{ readonly name: string; readonly command: string; readonly args: ReadonlyArray<string> }> =
  [
    { name: 'format and lint', command: 'biome', args: ['ci', '--error-on-warnings', '.'] },
    { name: 'types', command: 'tsc', args: [] },
    { name: 'generated files', command: 'node', args: ['infra/tools/generate.ts', '--check'] },
    { name: 'bundles', command: 'node', args: ['infra/tools/build.ts', '--check'] },
    { name: TESTS, command: 'vitest', args: ['run', '--project', 'unit'] },
  ];

const asked = process.argv.slice(2);
if (asked.some((word) => word !== '--without-tests')) {
  process.stderr.write(`npm run check takes --without-tests and nothing else, not ${asked.join(' ')}\n`);
  process.exit(2);
}

const failed: string[] = [];
for (const { name, command, args } of STEPS) {
  if (name === TESTS && asked.length > 0) continue;
  const started = Date.now();
  const { code, output } = await run(command, args);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${code === 0 ? 'ok  ' : 'FAIL'}  ${name} (${seconds} s)\n`);
  if (code === 0) continue;
  failed.push(name);
  process.stdout.write(`${output.trim()}\n\n`);
}
process.stdout.write(failed.length === 0 ? 'everything is in order\n' : `not in order: ${failed.join(', ')}\n`);
process.exit(failed.length === 0 ? 0 : 1);

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

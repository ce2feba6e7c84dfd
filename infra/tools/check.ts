// `npm run check`: everything that a machine can check in two or three minutes. `--without-tests` leaves the unit tests
// to an `npm test` that follows.
import { exec } from 'node:child_process';

/**
 * Each of them uses one core for most of its time, so they run side by side. npm scripts have node_modules/.bin first
 * on the PATH.
 */
const QUICK = {
  'format and lint': 'biome ci --error-on-warnings .',
  types: 'tsc',
  'generated files': 'node infra/tools/generate.ts --check',
  'bundle budgets': 'node infra/tools/build.ts --check',
  'CRDs since the last release': 'node infra/tools/crd-changes.ts',
};

/** Unit tests use every core, so they run alone. The import rule is one of them. */
const TESTS: [string, string] = ['unit and golden tests', 'vitest run --project laws --project unit'];

const asked = process.argv.slice(2);
if (asked.some((word) => word !== '--without-tests')) {
  process.stderr.write(`npm run check takes --without-tests and nothing else, not ${asked.join(' ')}\n`);
  process.exit(2);
}

// All of them run, so that one report shows everything that is wrong.
const secondsSince = (began: number) => ((Date.now() - began) / 1000).toFixed(1);
const started = Date.now();
const reports = await Promise.all(Object.entries(QUICK).map(check));
if (asked.length === 0) reports.push(await check(TESTS));
const failed = reports.filter((name) => name !== undefined);
const result = failed.length === 0 ? `all in order (${secondsSince(started)} s)` : `not in order: ${failed.join(', ')}`;
process.stdout.write(`${result}\n`);
process.exit(failed.length === 0 ? 0 : 1);

/** Reports the step, with its output where it failed; answers its name then. */
function check([name, command]: [string, string]): Promise<string | undefined> {
  const began = Date.now();
  process.stdout.write(`run   ${name}: ${command}\n`);
  return new Promise((resolve) => {
    exec(command, { maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      const seconds = secondsSince(began);
      process.stdout.write(`${error === null ? 'ok  ' : 'FAIL'}  ${name} (${seconds} s)\n`);
      if (error !== null) process.stdout.write(`${stdout}${stderr}`.trim().concat('\n\n'));
      else if (stdout.startsWith('no tag')) process.stdout.write(`      ${stdout}`);
      resolve(error === null ? undefined : name);
    });
  });
}

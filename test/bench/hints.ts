// How long from an apply until a key works, while runs of the CronJob hand over to each other? Three minutes, a key a second.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const SECONDS = '180';
const ROOT = join(import.meta.dirname, '../..');

/** The committed test, for as long as the promise is made: it fails where a key waits for a sweep. */
export async function benchHints(): Promise<string> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'world', 'test/platforms/listen.world.test.ts', '-t', 'a key applied'];
  const env = { LISTEN_TEST_SECONDS: SECONDS, LISTEN_TEST_MINUTE: '60', ...process.env };
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      printed += chunk;
    });
  }
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`a key waited for a sweep:\n${printed}`);
  const said = [...printed.matchAll(/^ *(\d+ keys: .*)$/gm)].map(([, line]) => `- ${line}`);
  return `From apply to a usable key, on the embedded API server, then (with KUBEBUILDER_ASSETS) on a real one:\n\n${said.join('\n')}`;
}

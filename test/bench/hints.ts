// How long from an apply until a key works, by what tells reconcile of it? Each of the triggers that are to take less than a second.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { whyNoControlPlane } from '../control-plane.ts';
import { hintsOnEmbedded, hintsOnReal, hintsOnWorkers } from './hints/admission.ts';
import { quantile } from './hints/keys.ts';
import { hintsOfKnative, whyNoKnative } from './hints/knative.ts';
import { table } from './table.ts';

const SECONDS = '180';
const KEYS = 60;
const ROOT = join(import.meta.dirname, '../..');

export async function benchHints(): Promise<string> {
  const rows: string[][] = [...(await listened())];
  const scenes = [
    ["admission's hint, embedded API server", undefined, hintsOnEmbedded],
    ["admission's hint, real API server", whyNoControlPlane(), hintsOnReal],
    ["admission's hint, Workers, embedded API server", undefined, hintsOnWorkers],
    ["Knative's ApiServerSource, a User's key, real API server", whyNoControlPlane() ?? whyNoKnative(), hintsOfKnative],
  ] as const;
  for (const [name, why, scene] of scenes) {
    if (why === undefined) rows.push(toRow(name, await scene(KEYS)));
    else rows.push([name, why, '', '', '']);
  }
  const head = ['what tells reconcile', 'keys', 'p50, ms', 'p99, ms', 'slowest, ms'];
  return `From apply to a usable key:\n\n${table(head, rows)}`;
}

function toRow(name: string, waits: ReadonlyArray<number>): string[] {
  const told = [quantile(waits, 0.5), quantile(waits, 0.99), Math.max(...waits)];
  return [name, String(waits.length), ...told.map((millis) => millis.toFixed(0))];
}

/** The committed test, for as long as the promise is made: it fails where a key waits for a sweep. */
async function listened(): Promise<string[][]> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
  const args = [vitest, 'run', '--project', 'platforms', 'test/platforms/listen.world.test.ts', '-t', 'a key applied'];
  const env = { TEST_ALL: '1', LISTEN_TEST_SECONDS: SECONDS, LISTEN_TEST_MINUTE: '60', ...process.env };
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      printed += chunk;
    });
  }
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`a key waited for a sweep:\n${printed}`);
  const line = /^ *(\d+) keys on (.*): median (\d+) ms, p99 (\d+) ms, slowest (\d+) ms; (\d+) hand-overs$/gm;
  return [...printed.matchAll(line)].map(([, keys = '', ground = '', median = '', p99 = '', slowest = '', handed]) => [
    `--listen, ${handed} hand-overs, ${ground}`,
    keys,
    median,
    p99,
    slowest,
  ]);
}

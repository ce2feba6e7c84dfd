// How does a test get the whole stack, as a person gets it: a process, a state folder, `kubectl`?
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Endpoints } from '../infra/local/stack.ts';
import { openWitness } from './witness.ts';

const ROOT = join(import.meta.dirname, '..');

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface TestStack {
  readonly folder: string;
  readonly endpoints: Endpoints;
  /** Everything the process has printed so far. */
  printed(): string;
  /** The stock `kubectl` against this stack. */
  kubectl(args: ReadonlyArray<string>, stdin?: string): Promise<Finished>;
  /** Fails where a key or password was shown; then SIGTERM; answers the exit code. */
  stop(): Promise<number>;
  /** SIGKILL to the process alone, as the kernel does it. */
  kill(): Promise<void>;
  /** The same folder again. */
  again(args?: ReadonlyArray<string>): Promise<TestStack>;
}

/** A folder that goes when the test process ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-test-'));
  // PostgreSQL does not run as root: whom it runs as must be able to get here.
  chmodSync(folder, 0o755);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts `npm start`'s own program with these options on free ports, and waits until it says that it is ready. */
export async function startTestStack(
  args: ReadonlyArray<string> = [],
  folder = join(temporaryFolder(), 'state'),
): Promise<TestStack> {
  const child = launch(['--state', folder, '--port', '0', ...args]);
  let printed = '';
  const collect = (chunk: Buffer) => {
    printed += chunk;
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  const file = join(folder, 'endpoints.json');
  // A stack that was killed leaves its file behind: only one of this process counts.
  const isReady = () => existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as Endpoints).pid === child.pid;
  for (const until = Date.now() + 90_000; !isReady(); await pause(50)) {
    if (child.exitCode !== null || Date.now() > until) throw new Error(`the stack did not start:\n${printed}`);
  }
  const endpoints = JSON.parse(readFileSync(file, 'utf8')) as Endpoints;
  const kubectl = (words: ReadonlyArray<string>, stdin?: string) =>
    run('kubectl', words, { KUBECONFIG: endpoints.kubeconfig }, stdin);
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)));
  const witness = await openWitness(endpoints.kubeconfig);
  // Made with its first line.
  const log = () => (existsSync(join(folder, 'stack.log')) ? readFileSync(join(folder, 'stack.log'), 'utf8') : '');
  const mustBeSilent = (shown: ReadonlyArray<string>) => {
    const first = shown.map((value) => `${value.slice(0, 6)}…`);
    if (first.length > 0) throw new Error(`keys or passwords of Secrets are shown: ${first.join(', ')}`);
  };
  return {
    folder,
    endpoints,
    printed: () => printed,
    kubectl,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const said = [printed, log(), ...(await askedOf(endpoints))];
        mustBeSilent(await witness.search(said).catch(() => witness.searchTexts(said)));
      }
      child.kill('SIGTERM');
      const code = await ended;
      await witness.stop();
      mustBeSilent(witness.searchTexts([printed, log()]));
      return code;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
      await witness.stop();
      mustBeSilent(witness.searchTexts([printed, log()]));
    },
    again: (more = args) => startTestStack(more, folder),
  };
}

/** What the functions say to whoever asks: plans, as people and as programs read them, and metrics. What is down says nothing. */
async function askedOf({ reconcile, gateway, admission }: Endpoints): Promise<ReadonlyArray<string>> {
  const ask = async (url: string, init: RequestInit = {}) =>
    (await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) })).text();
  const plan = `${reconcile}?dry-run=true`;
  const answers = await Promise.allSettled([
    ask(plan, { method: 'POST' }),
    ask(plan, { method: 'POST', headers: { accept: 'text/plain' } }),
    ask(new URL('/metrics', reconcile).href),
    ask(new URL('/metrics', gateway).href),
    run('curl', ['-sk', new URL('/metrics', admission).href]).then(({ stdout }) => stdout),
  ]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/** The program alone, run to its end: for what it says when it will not start. */
export async function runStack(args: ReadonlyArray<string>): Promise<Finished> {
  return finished(launch(args));
}

export function run(
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  stdin?: string,
): Promise<Finished> {
  const child = spawn(command, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(stdin ?? '');
  return finished(child);
}

function launch(args: ReadonlyArray<string>): ChildProcess {
  return spawn(process.execPath, [join(ROOT, 'infra/local/main.ts'), ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function finished(child: ChildProcess): Promise<Finished> {
  return new Promise((resolve, reject) => {
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}

/** Asks again until it is so, or fails with what was last seen. */
export async function eventually<T>(look: () => Promise<T>, is: (seen: T) => boolean, patience = 15_000): Promise<T> {
  for (const until = Date.now() + patience; ; await pause(100)) {
    const seen = await look();
    if (is(seen)) return seen;
    if (Date.now() > until) throw new Error(`still not so after ${patience} ms: ${JSON.stringify(seen)}`);
  }
}

/** Why a run on a real API server is skipped here, or undefined when it can be made. */
export function whyNoEnvtest(): string | undefined {
  const assets = process.env.KUBEBUILDER_ASSETS;
  if (assets === undefined) return 'KUBEBUILDER_ASSETS is not set (a folder with etcd and kube-apiserver)';
  return existsSync(join(assets, 'kube-apiserver')) ? undefined : `no kube-apiserver in ${assets}`;
}

// Programs that tests start: their output and their ends.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { eventually } from './eventually.ts';

const ROOT = join(import.meta.dirname, '../..');
/** A program that has not printed the expected text by then hangs. */
const TIMEOUT = 90_000;

export interface ChildResult {
  /** The exit code; -1 where a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Child {
  readonly pid: number;
  stdout(): string;
  stderr(): string;
  /** Both outputs, in order of arrival. */
  printed(): string;
  isRunning(): boolean;
  /** Resolves when the program has ended and its output was read. */
  readonly ended: Promise<ChildResult & { readonly signal: NodeJS.Signals | null }>;
  /** Waits until the condition is true; fails with the whole output when the program ends before. */
  until(is: () => boolean | Promise<boolean>): Promise<void>;
  /** Waits for the pattern on standard output; returns the first group. */
  prints(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
  /** Sends the signal and waits for the end. */
  end(name?: NodeJS.Signals): Promise<ChildResult & { readonly signal: NodeJS.Signals | null }>;
}

export interface ChildOptions {
  /** The whole environment of the program; absent: the test's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly stdin?: string;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}

const running = new Set<{ kill(signal: NodeJS.Signals): boolean }>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a program in the root of the repository. It does not outlive the test process. */
export function startChild(command: string, args: ReadonlyArray<string>, options: ChildOptions = {}): Child {
  const { stdin = '', env = process.env, cwd = ROOT, uid, gid } = options;
  const identity = { ...(uid !== undefined && { uid }), ...(gid !== undefined && { gid }) };
  const child = spawn(command, args, { ...identity, cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  // A program that ends before it has read its input reports more than the broken pipe would.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const text = { stdout: '', stderr: '', both: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
      text.both += chunk;
    });
  }
  const ended = new Promise<ChildResult & { signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code: code ?? -1, signal, stdout: text.stdout, stderr: text.stderr });
    });
  });
  // The caller that needs the failure awaits it.
  ended.catch(() => undefined);
  const isRunning = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  const until = async (is: () => boolean | Promise<boolean>) => {
    const look = async () => ((await is()) ? 'so' : isRunning() ? 'not in time' : 'it ended');
    const seen = await eventually(look, (answer) => answer !== 'not in time', TIMEOUT).catch(look);
    if (seen !== 'so') throw new Error(`${command} ${args.join(' ')}: ${seen}:\n${text.both}`);
  };
  return {
    pid: child.pid ?? 0,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    printed: () => text.both,
    isRunning,
    ended,
    until,
    async prints(pattern) {
      await until(() => pattern.test(text.stdout));
      return pattern.exec(text.stdout)?.[1] ?? '';
    },
    signal: (name) => void child.kill(name),
    end(name = 'SIGTERM') {
      child.kill(name);
      return ended;
    },
  };
}

/** Runs a program to its end; `env` is added to the test's environment. */
export async function run(
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  stdin = '',
): Promise<ChildResult> {
  const { code, stdout, stderr } = await startChild(command, args, { env: { ...process.env, ...env }, stdin }).ended;
  return { code, stdout, stderr };
}

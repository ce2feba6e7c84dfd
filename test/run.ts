// How does a test run a program to its end, at the root of the repository?
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function run(
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  stdin?: string,
): Promise<Finished> {
  const child = spawn(command, args, { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  // Who ends before all was read has its own words and exit code for it; the broken pipe would say less.
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin ?? '');
  return finished(child);
}

/** How it ended, and what it said until then. */
export function finished(child: ChildProcess): Promise<Finished> {
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

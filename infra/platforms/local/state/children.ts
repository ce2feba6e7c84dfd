// Programs that the stack runs: each in a process group of its own, where a terminal's Ctrl-C does not reach it, and
// ended with the stack however that ends.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startOf } from '../../../adapters/process/running-processes.ts';

export interface Program {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
  /** The user that runs it. Absent: the user of the stack. */
  readonly identity?: { readonly uid: number; readonly gid: number } | undefined;
  /** Takes what the program writes to stdout and stderr. */
  readonly onOutput?: (chunk: Buffer) => void;
  /** The signal that asks the program to stop. */
  readonly stopSignal: NodeJS.Signals;
  /** The signal that kills the program when it is too slow or the stack has gone; must lose nothing. */
  readonly killSignal: NodeJS.Signals;
}

export type Children = ReturnType<typeof createChildren>;
export type Child = ReturnType<Children['start']>;

/** The folder has a file for each running program, named by the id of its process. */
export function createChildren(folder: string) {
  return {
    start: (program: Program) => {
      const { command, args, identity, onOutput = () => undefined, stopSignal, killSignal } = program;
      const guard = startGuard(killSignal);
      const child = spawn(command, args, { ...identity, cwd: '/', detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
      // The id is 0 if the program could not be started.
      const { pid = 0 } = child;
      guard.stdin?.write(`${pid}\n`);
      const note = join(folder, String(pid));
      mkdirSync(folder, { recursive: true });
      if (pid > 0) writeFileSync(note, JSON.stringify({ start: startOf(pid) ?? '', killSignal } satisfies Note));
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk: Buffer) => {
          output = `${output}${chunk}`.slice(-4000);
          onOutput(chunk);
        });
      }
      /** Resolves with the exit code, signal or error. */
      const ended = endOf(child).finally(() => {
        guard.stdin?.end('ended\n');
        rmSync(note, { force: true });
      });
      /** Asks the program to stop, kills it after `timeout` milliseconds, returns when it has ended. */
      const stop = async (timeout: number) => {
        child.kill(stopSignal);
        const late = setTimeout(() => child.kill(killSignal), timeout);
        await ended;
        clearTimeout(late);
      };
      const lastLines = () => output.trim().split('\n').slice(-3).join(' | ');
      return { pid, ended, lastLines, stop };
    },
    /** Ends the programs that an earlier stack on this folder, which was killed, has left running. */
    endReplays: async () => {
      mkdirSync(folder, { recursive: true });
      for (const name of readdirSync(folder)) await endReplay(folder, name);
    },
  };
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', ({ message }) => resolve(message));
    child.once('close', (code, signal) => resolve(`exit code ${code ?? signal}`));
  });
}

interface Note {
  readonly start: string;
  readonly killSignal: NodeJS.Signals;
}

/**
 * A shell that reads the child's id and then waits for one word. When this process is gone, the pipe closes without the
 * word, and the shell ends the child.
 */
function startGuard(killSignal: NodeJS.Signals): ChildProcess {
  const script = 'read -r pid && { read -r word || kill -s "$1" "$pid"; }';
  const guard = spawn('/bin/sh', ['-c', script, 'guard', killSignal.slice(3)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // A dead guard matters only if the stack is killed too: the next stack then finds the file.
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  guard.unref();
  return guard;
}

/** Milliseconds that PostgreSQL may take to end its connections. */
const TIMEOUT = 10_000;

async function endReplay(folder: string, name: string): Promise<void> {
  const file = join(folder, name);
  const note = readNote(file);
  const pid = Number(name);
  // Process ids are reused: id and start together identify the process.
  const isRunning = () => note !== undefined && startOf(pid) === note.start;
  if (note !== undefined && isRunning()) process.kill(pid, note.killSignal);
  for (const until = Date.now() + TIMEOUT; isRunning(); await pause(20)) {
    if (Date.now() > until) throw new Error(`process ${name}, which an earlier stack has left, does not end`);
  }
  rmSync(file, { force: true });
}

/** Undefined if a kill has left an incomplete file: the guard had the process before that. */
function readNote(file: string): Note | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Note;
  } catch {
    return undefined;
  }
}

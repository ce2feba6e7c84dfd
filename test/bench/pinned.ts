// Programs of a bench, each on its own core, and their CPU time.
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';

/** The cores of the measured program and of the load: different ones where there are two and a `taskset`. */
export type Core = 0 | 1;

export const pins = cpus().length > 1 && spawnSync('taskset', ['-V']).status === 0;

/** Pins this program, and programs that it starts later unless they are pinned elsewhere. */
export function pinSelf(core: Core): void {
  if (pins) spawnSync('taskset', ['-a', '-cp', String(core), String(process.pid)]);
}

/** Starts a program of this folder, with a message channel. `flags` are Node's own. */
export function forkPinned(
  core: Core,
  [program, ...flags]: readonly [program: string, ...flags: string[]],
  args: ReadonlyArray<string> = [],
): ChildProcess {
  const path = join(import.meta.dirname, program);
  return pins
    ? fork(path, [...args], { execPath: 'taskset', execArgv: ['-c', String(core), process.execPath, ...flags] })
    : fork(path, [...args], { execArgv: [...flags] });
}

export interface SpawnOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly hasChannel?: boolean;
}

/** Starts Node with these arguments and only this environment; on request, with a message channel. */
export function spawnPinned(core: Core, args: ReadonlyArray<string>, options: SpawnOptions): ChildProcess {
  const env = { PATH: process.env.PATH ?? '', ...options.environment };
  const words = pins ? ['taskset', '-c', String(core), process.execPath, ...args] : [process.execPath, ...args];
  const [command = '', ...rest] = words;
  const channel = options.hasChannel === true ? (['ipc'] as const) : [];
  return spawn(command, rest, { env, stdio: ['ignore', 'pipe', 'inherit', ...channel] });
}

/** Sends a message, and waits for the next one from the program. */
export async function ask<T>(child: ChildProcess, message: object | string): Promise<T> {
  child.send(message);
  return next(child);
}

export async function next<T>(child: ChildProcess): Promise<T> {
  const settled = new AbortController();
  const { signal } = settled;
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`a part of the bench ended with ${code}`);
  });
  try {
    const [answer] = (await Promise.race([once(child, 'message', { signal }), ended])) as [T];
    return answer;
  } finally {
    ended.catch(() => undefined);
    settled.abort();
  }
}

const TIMEOUT = 30_000;

/** The first match in the output; the rest is read and dropped. */
export function printed(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`not printed within ${TIMEOUT} ms: ${pattern}`)), TIMEOUT);
    const look = (chunk: Buffer) => {
      text += chunk;
      const found = pattern.exec(text)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      child.stdout?.off('data', look).resume();
      resolve(found);
    };
    child.stdout?.on('data', look);
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${text}`)));
  });
}

/** Milliseconds of CPU of the process so far; undefined where the system does not report them. */
export function cpuOf({ pid }: Pick<ChildProcess, 'pid'>): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime and stime, in hundredths of a second.
    return (Number(fields[11]) + Number(fields[12])) * 10;
  } catch {
    return undefined;
  }
}

/** Milliseconds of a core so far. */
export interface CoreTimes {
  readonly busy: number;
  /** Programs and the hypervisor, without interrupts. */
  readonly taken: number;
  readonly all: number;
}

/** Undefined where the system does not report them. */
export function timesOf(core: Core): CoreTimes | undefined {
  try {
    const line = new RegExp(`^cpu${core} (.*)$`, 'm').exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? '';
    // user, nice, system, idle, iowait, irq, softirq, steal, in hundredths of a second.
    const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = line
      .split(' ')
      .map(Number);
    const taken = user + nice + system + steal;
    const busy = taken + irq + softirq;
    return { busy: busy * 10, taken: taken * 10, all: (busy + idle + iowait) * 10 };
  } catch {
    return undefined;
  }
}

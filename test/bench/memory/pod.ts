// A gateway process with the options and the memory limit of its Pod: in a cgroup, where this machine lets us make one.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printed } from '../pinned.ts';

const MIB = 2 ** 20;
/** The first: cgroups of version 1, the second: of version 2. */
const ROOTS = [
  { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' },
  { root: '/sys/fs/cgroup', limit: 'memory.max', peak: 'memory.peak' },
] as const;

export interface Pod {
  readonly process: ChildProcess;
  readonly port: number;
  /** MiB of the process now, and the most that it had. */
  memory(): { readonly now: number; readonly peak: number };
  isAlive(): boolean;
  end(): Promise<void>;
}

export interface PodOptions {
  /** Behind `node`. */
  readonly command: ReadonlyArray<string>;
  readonly environment: Readonly<Record<string, string>>;
  /** MiB. */
  readonly limit: number;
}

/** Why there is no limit but the process's own measure; undefined: there is one. */
export function whyNoLimit(): string | undefined {
  return groupOf('probe', 64) === undefined ? 'this machine lets us make no cgroup of memory' : undefined;
}

let started = 0;

export async function startPod({ command, environment, limit }: PodOptions): Promise<Pod> {
  started += 1;
  const group = groupOf(`${process.pid}-${started}`, limit);
  const join = group === undefined ? '' : `echo $$ > ${group}/cgroup.procs; `;
  const env = { PATH: process.env.PATH ?? '', ...environment };
  const words = ['-c', `${join}exec "$0" "$@"`, process.execPath, ...command];
  const child = spawn('sh', words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = await printed(child, /"message":"listening".*"url":"([^"]+)"/);
  const isAlive = () => child.exitCode === null && child.signalCode === null;
  return {
    process: child,
    port: Number(new URL(url).port),
    memory: () => memoryOf(child.pid),
    isAlive,
    end: async () => {
      child.kill('SIGKILL');
      await ended;
      if (group !== undefined) rmdirSync(group);
    },
  };
}

function groupOf(name: string, limit: number): string | undefined {
  for (const { root, limit: file } of ROOTS) {
    const folder = join(root, `gateway-operator-bench-${name}`);
    try {
      mkdirSync(folder);
      if (existsSync(join(folder, file))) {
        writeFileSync(join(folder, file), `${limit * MIB}`);
        if (name === 'probe') rmdirSync(folder);
        return folder;
      }
      rmdirSync(folder);
    } catch {
      // The next version, or none.
    }
  }
  return undefined;
}

function memoryOf(pid: number | undefined): { readonly now: number; readonly peak: number } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) / 1024;
  return { now: mib('VmRSS'), peak: mib('VmHWM') };
}

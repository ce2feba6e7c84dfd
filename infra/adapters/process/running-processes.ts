// Processes of this machine: which run, and since when.
import { readFileSync } from 'node:fs';

/**
 * When the process of this id began, as the system says it ('' where the system says nothing); undefined where no such
 * process runs. A zombie (ended, and its parent has not asked how) does not run: where the first process of a container
 * never asks, zombies stay for good. Id and start together name one process: ids are used again.
 */
export function startOf(pid: number): string | undefined {
  const { state, start } = process.platform === 'linux' ? readStat(pid) : askPs(pid);
  return /^[ZX]/.test(state) || !exists(pid) ? undefined : start;
}

/** The start is in ticks since boot. */
function readStat(pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before is in parentheses, and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? '' };
  } catch {
    return { state: '', start: '' };
  }
}

/** Loaded when it is needed: on Linux it never is. */
function askPs(pid: number) {
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const { stdout } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  const [state = '', ...start] = (stdout ?? '').trim().split(/\s+/);
  return { state, start: start.join(' ') };
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process runs, and belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

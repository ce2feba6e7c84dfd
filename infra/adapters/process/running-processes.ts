// Processes of this machine: whether they run, and since when.
import { readFileSync } from 'node:fs';

/**
 * The start of the process with this id, as a text of the system ('' if the system does not show it); undefined if no
 * such process runs. A zombie (ended, but its parent has not read its status) does not run: if the first process of a
 * container never reads statuses, zombies stay. Id and start together identify a process, because ids are reused.
 */
export function startOf(pid: number): string | undefined {
  const { state, start } = process.platform === 'linux' ? readStat(pid) : askPs(pid);
  return /^[ZX]/.test(state) || !exists(pid) ? undefined : start;
}

/** The start is in ticks since boot. */
function readStat(pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before it is in parentheses, and may contain any character.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', start: fields[19] ?? '' };
  } catch {
    return { state: '', start: '' };
  }
}

/** Loaded at its first use; never on Linux. */
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

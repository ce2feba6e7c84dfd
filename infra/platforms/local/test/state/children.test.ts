import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChild } from '../../../../../test/support/child.ts';
import { eventually } from '../../../../../test/support/eventually.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { startOf } from '../../../../adapters/process/running-processes.ts';
import { createChildren } from '../../state/children.ts';

const SLEEP = { command: 'sleep', args: ['600'], stopSignal: 'SIGTERM', killSignal: 'SIGKILL' } as const;

const isGone = (pid: number) =>
  eventually(
    async () => startOf(pid),
    (start) => start === undefined,
  );

test('a child says how it ended, and leaves no note', async () => {
  const folder = temporaryFolder();
  const children = createChildren(folder);
  const output: string[] = [];
  const args = ['-c', 'echo word; exit 3'];
  const child = children.start({ ...SLEEP, command: 'sh', args, onOutput: (chunk) => void output.push(`${chunk}`) });
  expect(readdirSync(folder)).toEqual([`${child.pid}`]);
  expect(await child.ended).toBe('exit code 3');
  expect(output.join('')).toBe('word\n');
  expect(readdirSync(folder)).toEqual([]);
  const none = children.start({ ...SLEEP, command: 'no-such-program' });
  expect(await none.ended).toContain('ENOENT');
  await none.stop(0);
});

test('a child that does not stop when it is asked is ended', async () => {
  const children = createChildren(temporaryFolder());
  const args = ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done'];
  const ready = Promise.withResolvers<void>();
  const child = children.start({ ...SLEEP, command: 'sh', args, onOutput: () => ready.resolve() });
  await ready.promise;
  await child.stop(50);
  expect(await child.ended).toBe('exit code SIGKILL');
});

test('a child ends with the process that started it, when that is killed', async () => {
  const script = `
    const { createChildren } = await import(process.argv[1]);
    console.log(createChildren(process.argv[2]).start(${JSON.stringify(SLEEP)}).pid);
    setTimeout(() => undefined, 600_000);
  `;
  const module = join(import.meta.dirname, '../../state/children.ts');
  const starter = startChild(process.execPath, ['--input-type=module', '-e', script, module, temporaryFolder()]);
  const pid = Number(await starter.prints(/(\d+)\n/));
  expect(startOf(pid)).toBeDefined();
  await starter.end('SIGKILL');
  await isGone(pid);
});

test('what an earlier process has left is ended; a stranger that got the id of one is not', async () => {
  const folder = join(temporaryFolder(), 'children');
  mkdirSync(folder);
  const leave = (start: (pid: number) => string | undefined) => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const pid = child.pid ?? 0;
    writeFileSync(join(folder, `${pid}`), JSON.stringify({ start: start(pid), killSignal: 'SIGKILL' }));
    return { child, pid };
  };
  const left = leave(startOf);
  const stranger = leave(() => 'another time');
  writeFileSync(join(folder, '2'), '{"sta');
  await createChildren(folder).endReplays();
  await isGone(left.pid);
  expect(startOf(stranger.pid)).toBeDefined();
  expect(existsSync(folder) && readdirSync(folder)).toEqual([]);
  stranger.child.kill('SIGKILL');
  await once(stranger.child, 'exit');
});

// Programs that tests start.
import { expect, test } from 'vitest';
import { run, startChild } from './child.ts';

test('a program that ends before it has read its input still reports its exit code and output', async () => {
  const more = 'x'.repeat(8 * 1024 * 1024);
  expect(await run('sh', ['-c', 'exec <&-; echo no >&2; exit 3'], {}, more)).toEqual({
    code: 3,
    stdout: '',
    stderr: 'no\n',
  });
});

test('a program that ends before it prints the expected text fails with its output', async () => {
  const child = startChild('sh', ['-c', 'echo one; echo two >&2']);
  await expect(child.prints(/three/)).rejects.toThrow(/sh -c .*: it ended:\n(one\ntwo|two\none)\n/);
});

test('waiting for a program’s output returns the match; a signal ends the program', async () => {
  const child = startChild('sh', ['-c', 'echo port 80; exec sleep 60']);
  expect(await child.prints(/port (\d+)/)).toBe('80');
  expect(child.isRunning()).toBe(true);
  expect(await child.end()).toMatchObject({ code: -1, signal: 'SIGTERM', stdout: 'port 80\n' });
  expect(child.isRunning()).toBe(false);
});

test('a missing program is named in the error', async () => {
  await expect(run('no-such-program', [])).rejects.toThrow('no-such-program');
});

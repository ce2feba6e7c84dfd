import { expect, test } from 'vitest';
import { run } from './run.ts';

test('a program that ends before it has read all it was given still tells its exit code and its words', async () => {
  const more = 'x'.repeat(8 * 1024 * 1024);
  expect(await run('sh', ['-c', 'exec <&-; echo no >&2; exit 3'], {}, more)).toEqual({
    code: 3,
    stdout: '',
    stderr: 'no\n',
  });
});

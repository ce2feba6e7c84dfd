import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { readOptions, UsageError } from '../options.ts';

test('without options everything runs on this machine, under .gateway-operator', () => {
  expect(readOptions([])).toEqual({
    state: resolve('.gateway-operator'),
    reset: false,
    empty: false,
    cluster: { type: 'embedded' },
    schedule: 60,
  });
  expect(readOptions(['--help'])).toBeUndefined();
});

test('a cluster that is neither embedded nor envtest is the path of a kubeconfig file', () => {
  expect(readOptions(['--cluster', 'some/config'])?.cluster).toEqual({
    type: 'kubeconfig',
    path: resolve('some/config'),
  });
});

test.each([
  [['--port', 'x'], '--port: Invalid value: "x": must be a whole number from 0 to 65535.'],
  [['--port', '70000'], '--port: Invalid value: "70000": must be a whole number from 0 to 65535.'],
  [['--schedule', '0'], '--schedule: Invalid value: "0": must be a whole number from 1 to 86400.'],
  [['--database', 'mysql://x/y'], '--database: must be embedded, or postgres://user:password@host:port/dbname.'],
  [['--cluster', ''], '--cluster: Required value: must be embedded, envtest, or the path of a kubeconfig file.'],
  [['--cluster', '--empty'], "Option '--cluster' argument is ambiguous. `npm start -- --help` lists the options."],
  [['--nonsense'], "Unknown option '--nonsense'. `npm start -- --help` lists the options."],
  [['extra'], "Unexpected argument 'extra'. `npm start -- --help` lists the options."],
])('%j is refused with one clear sentence', (args, sentence) => {
  expect(() => readOptions(args)).toThrow(new UsageError(sentence));
});

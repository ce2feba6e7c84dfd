// Ends of the local stack: Ctrl-C in a terminal, a killed process group, and the start right after it.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startOf } from '#adapters/process/running-processes.ts';
import { type Child, startChild } from '../support/child.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { describeUnless, testUnless } from '../support/skip-unless.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const isThere = (command: string) => spawnSync(command, ['--version']).status === 0;
const NO_PYTHON = isThere('python3') ? undefined : 'there is no python3, which opens the terminal';

/**
 * A script that runs a program in its own terminal, presses Ctrl-C at the pattern, and exits with the program's code.
 */
const TERMINAL = `
import os, pty, re, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
printed, pressed = b'', False
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    os.write(1, chunk)
    printed += chunk
    if not pressed and re.search(sys.argv[1].encode(), printed):
        os.write(terminal, b'\\x03')
        pressed = True
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

const children: Child[] = [];
const stacks: TestStack[] = [];
afterEach(async () => {
  for (const stack of stacks.splice(0)) await stack.stop();
  for (const child of children.splice(0)) await child.end('SIGKILL');
});

/** Presses Ctrl-C at the first output that matches. Returns the exit code and the output. */
async function interrupt(pattern: string, command: ReadonlyArray<string>): Promise<{ code: number; printed: string }> {
  const child = startChild('python3', ['-c', TERMINAL, pattern, ...command]);
  children.push(child);
  const { code, stdout } = await child.ended;
  return { code, printed: stdout };
}

const OPTIONS = ['--port', '0', '--empty'];
const newFolder = () => join(temporaryFolder(), 'state');

test('an interrupt while the program loads ends the start, says so, and leaves nothing', async () => {
  const early = `import { registerHooks } from 'node:module';
    registerHooks({ load: (url, context, next) => {
      if (url.endsWith('/local/stack.ts')) process.kill(process.pid, 'SIGINT');
      return next(url, context);
    } });`;
  const folder = newFolder();
  const program = ['infra/platforms/local/main.ts', '--state', folder, ...OPTIONS];
  const child = startChild(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(early)}`,
    ...program,
  ]);
  children.push(child);
  const { code, stdout } = await child.ended;
  expect([code, stdout]).toEqual([0, '\nstopping …\nstopped\n']);
  expect(existsSync(folder)).toBe(false);
});

describeUnless(NO_PYTHON, 'Ctrl-C in a terminal', () => {
  const NODE = [process.execPath, 'infra/platforms/local/main.ts'];

  const log = (folder: string) => join(folder, 'stack.log');
  /** Files that only an unclean stop leaves. */
  const leftIn = (folder: string) => [
    ...['endpoints.json', 'lock'].filter((name) => existsSync(join(folder, name))),
    ...readdirSync(join(folder, 'children')),
  ];

  test.each(['bash', 'dash'])('stops the stack that `npm start` runs below %s', async (shell) => {
    if (!isThere('bash') || (shell === 'dash' && !existsSync('/bin/dash'))) return;
    const folder = newFolder();
    const npm = ['npm', 'start', `--script-shell=/bin/${shell}`, '--', '--state', folder, ...OPTIONS];
    const { printed } = await interrupt('Ready', npm);
    expect(printed).toMatch(/stopping …\s*stopped/);
    expect(leftIn(folder)).toEqual([]);
    expect(existsSync(log(folder)) ? readFileSync(log(folder), 'utf8') : '').not.toContain(
      'PostgreSQL ended by itself',
    );
  });

  test('ends the start: immediately, cleanly, and says so', async () => {
    const folder = newFolder();
    const { code, printed } = await interrupt('database ', [...NODE, '--state', folder, ...OPTIONS]);
    expect(printed).toMatch(/stopping …\s*stopped/);
    expect(printed).not.toContain('Ready');
    expect(code).toBe(0);
    expect(leftIn(folder)).toEqual([]);
  });
});

const NO_ORPHANS =
  process.platform === 'linux' ? NO_PYTHON : 'only Linux hands orphans to a process that is not the first';

/** A container's first process that never reaps the orphans it adopts. */
const NEVER_REAPS = `
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
child = os.fork()
if child == 0:
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])
print(child, flush=True)
time.sleep(600)
`;

testUnless(
  NO_ORPHANS,
  'a start right after a kill of the whole group is ready, although the zombies stay',
  async () => {
    const folder = newFolder();
    const program = [process.execPath, 'infra/platforms/local/main.ts', '--state', folder, ...OPTIONS];
    const parent = startChild('python3', ['-c', NEVER_REAPS, ...program]);
    children.push(parent);
    await parent.until(() => existsSync(join(folder, 'endpoints.json')));
    const group = Number(parent.stdout().split('\n')[0]);
    process.kill(-group, 'SIGKILL');
    // The killed process is a zombie now.
    await eventually(
      async () => readFileSync(`/proc/${group}/stat`, 'utf8'),
      (stat) => stat.includes(') Z '),
    );
    const stack = await startTestStack(['--empty'], folder);
    stacks.push(stack);
    expect(await stack.ok('get', 'namespaces')).toContain('default');
  },
);

testUnless(whyNoControlPlane(), '--reset after a kill leaves no process of the earlier cluster running', async () => {
  const first = await startTestStack(['--empty', '--cluster', 'envtest']);
  const pids = readdirSync(join(first.folder, 'children')).map(Number);
  // The processes are PostgreSQL, etcd and kube-apiserver.
  expect(pids.length).toBeGreaterThanOrEqual(3);
  await first.kill();
  const second = await first.again(['--empty', '--reset']);
  stacks.push(second);
  expect(pids.filter((pid) => startOf(pid) !== undefined)).toEqual([]);
});

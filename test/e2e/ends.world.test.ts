// Ends of the local stack: a killed process group, and the start right after it.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { testUnless } from '../skip-unless.ts';
import { startTestStack, type TestStack } from '../stack.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const NOT_LINUX =
  process.platform === 'linux' ? undefined : 'only Linux hands orphans to a process that is not the first';

/** What a container's first process may be: orphans become its children, and it never asks how they ended. */
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

const children: ChildProcess[] = [];
const stacks: TestStack[] = [];
afterEach(async () => {
  for (const stack of stacks.splice(0)) await stack.stop();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Starts a stack below a process that never reaps, waits until it is ready, and kills its process group. */
async function killedGroup(folder: string): Promise<void> {
  const program = ['infra/local/main.ts', '--state', folder, '--port', '0', '--empty'];
  const parent = spawn('python3', ['-c', NEVER_REAPS, process.execPath, ...program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(parent);
  let printed = '';
  parent.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  await eventually(
    async () => existsSync(join(folder, 'endpoints.json')),
    (isReady) => isReady,
    60_000,
  );
  process.kill(-Number(printed.split('\n')[0]), 'SIGKILL');
}

testUnless(
  NOT_LINUX,
  'a start right after a kill of the whole group is ready, although nobody reaps the dead',
  async () => {
    const folder = join(temporaryFolder(), 'state');
    await killedGroup(folder);
    const { pid } = JSON.parse(readFileSync(join(folder, 'endpoints.json'), 'utf8'));
    await eventually(
      async () => readFileSync(`/proc/${pid}/stat`, 'utf8'),
      (stat) => stat.includes(') Z '),
    );
    const stack = await startTestStack(['--empty'], folder);
    stacks.push(stack);
    expect(await stack.ok('get', 'namespaces')).toContain('default');
  },
);

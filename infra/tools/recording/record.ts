// `npm run record`: runs the first commands of README.md for real, and writes what the terminal showed as an SVG.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commandsOf } from './commands.ts';
import { type Line, toCommandLines, toRecording, wrap } from './terminal.ts';

const ROOT = join(import.meta.dirname, '../../..');
const RECORDING = 'docs/pictures/ten-minutes.svg';
const TITLE = 'A terminal: npm start, a call with a key, and a key whose budget is spent after a few calls';
/** Seconds. Nobody waits longer than `PAUSE` for the next output; reading a command takes a time for each character. */
const PAUSE = 1.2;
const TYPING = 0.012;
/** The line that ends the output of a command. */
const MARK = '--done--';
/** A command that hangs fails the recording after this time, in milliseconds. */
const LIMIT = 120_000;

const lines: Line[] = [];
let clock = 0.5;

function show(texts: readonly string[], after: number, isCommand = false): void {
  clock += Math.min(after, PAUSE);
  for (const text of texts) lines.push({ at: clock, text, isCommand });
}

function showCommand(command: string): void {
  show(toCommandLines(command), PAUSE, true);
  clock += Math.min(command.length * TYPING, 2 * PAUSE);
}

/** Shows each line of the process until one matches, without the path of the temporary folder. */
function follow(child: ChildProcess, isLast: (line: string) => boolean, isHidden = isLast): Promise<void> {
  return new Promise((resolve, reject) => {
    let rest = '';
    let before = Date.now();
    const timer = setTimeout(
      () => reject(new Error(`no end within ${LIMIT} ms; the last line: ${lines.at(-1)?.text}`)),
      LIMIT,
    );
    const end = () => {
      clearTimeout(timer);
      child.stdout?.off('data', read);
      resolve();
    };
    const read = (chunk: Buffer) => {
      const found = `${rest}${chunk}`.split('\n');
      rest = found.pop() ?? '';
      for (const line of found) {
        if (!isHidden(line)) show(wrap(line.replaceAll(`${folder}/`, '')), (Date.now() - before) / 1000);
        before = Date.now();
        if (isLast(line)) return end();
      }
    };
    child.stdout?.on('data', read);
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
  });
}

const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-recording-'));
const state = join(folder, '.gateway-operator');
showCommand('npm start');
// `npm start` runs this program; here it has a state folder and a port of its own.
const stack = spawn(process.execPath, [join(ROOT, 'infra/platforms/local/main.ts'), '--state', state, '--port', '0'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const shell = spawn('bash', [], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] });
try {
  await follow(
    stack,
    (line) => line.startsWith('Ready.'),
    () => false,
  );
  show(['', '# In a second terminal'], PAUSE);
  // One shell for all commands, so that variables last. Progress bars of curl are for terminals only.
  shell.stdin.write('exec 2>&1; curl() { command curl -sS "$@"; }\n');
  for (const command of commandsOf(readFileSync(join(ROOT, 'README.md'), 'utf8'))) {
    showCommand(command);
    shell.stdin.write(`${command}\necho; echo ${MARK}\n`);
    await follow(
      shell,
      (line) => line === MARK,
      (line) => line === MARK || line.trim() === '',
    );
  }
  writeFileSync(join(ROOT, RECORDING), toRecording(lines, TITLE));
  process.stdout.write(`${RECORDING}: ${clock.toFixed(0)} seconds, ${lines.length} lines\n`);
} finally {
  shell.stdin.end();
  stack.kill('SIGTERM');
  await new Promise((resolve) => (stack.exitCode === null ? stack.once('exit', resolve) : resolve(undefined)));
  rmSync(folder, { recursive: true, force: true });
}

// The real programs, in pinned versions, in a folder of the operating system's temporary one: they are no dependencies
// of the project.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const FOLDER = join(tmpdir(), 'gateway-operator-clients');

const NPM = [
  '@anthropic-ai/claude-code@2.1.330',
  '@openai/codex@0.169.0',
  'opencode-ai@1.18.33',
  'openai@7.57.0',
  '@anthropic-ai/sdk@1.12.0',
  'ai@7.0.173',
  '@ai-sdk/openai@4.0.118',
  '@ai-sdk/anthropic@4.0.105',
  '@langchain/openai@1.6.0',
  '@langchain/core',
  'zod@4',
];
const PYPI = ['openai==3.54.0', 'anthropic==2.12.0'];
const WANTED = [...NPM, ...PYPI].join('\n');

/** Installs what is missing, about 1.4 GB once. Returns why the programs cannot be used here; undefined: they can. */
export function install(): string | undefined {
  if (!process.env.TEST_CLIENTS) return 'TEST_CLIENTS=1 installs the real programs, 1.4 GB, and runs them for minutes';
  const mark = join(FOLDER, 'installed');
  try {
    if (!existsSync(mark) || readFileSync(mark, 'utf8') !== WANTED) installAll(mark);
    cpSync(join(import.meta.dirname, 'programs'), join(FOLDER, 'programs'), { recursive: true });
    return undefined;
  } catch (error) {
    return `the programs could not be installed: ${error instanceof Error ? error.message.split('\n')[0] : error}`;
  }
}

function installAll(mark: string): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, 'package.json'), '{"private":true,"type":"module"}');
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: FOLDER, stdio: 'pipe' });
  run('npm', 'install', '--no-audit', '--no-fund', '--save-exact', ...NPM);
  // Install scripts, which newer versions of npm do not run by themselves.
  run('npm', 'rebuild', '--foreground-scripts');
  run('python3', '-m', 'venv', 'py');
  run('py/bin/pip', 'install', '--quiet', '--disable-pip-version-check', ...PYPI);
  writeFileSync(mark, WANTED);
}

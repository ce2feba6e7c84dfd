// What does the documentation tell people to type? The very text, to be run.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');

/** The block after `<!-- tested: NAME -->`. */
export function documented(file: string, name: string, language = 'sh'): string {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const [, block] = text.split(`<!-- tested: ${name} -->\n\`\`\`${language}\n`);
  const end = block?.indexOf('\n```');
  if (block === undefined || end === undefined || end === -1) throw new Error(`${file} has no tested block ${name}`);
  return block.slice(0, end);
}

/** The settings of docs/install/workers.md with values of an own cluster, as deploying wants them. */
export const filledSettings = (): string =>
  documented('docs/install/workers.md', 'settings', 'json')
    .replaceAll(/the token of|a-token-of|an-unguessable|a token that|sk-change-me|sample\.upstash/g, 'own-$&')
    .replaceAll('api.cluster.example.com', 'api.own.example.com')
    .replaceAll('0123456789abcdef', '0123456789abcde0')
    .replaceAll('fedcba9876543210', 'fedcba9876543211');

/** A folder that looks like the repository for what the commands read; what they write goes there. */
export function deskIn(folder: string): string {
  const desk = join(folder, 'desk');
  mkdirSync(desk);
  for (const part of ['crds', 'infra', 'node_modules', 'package.json']) symlinkSync(join(ROOT, part), join(desk, part));
  return desk;
}

/** Runs it as a person would, and stops at the first command that fails. */
export async function type(text: string, cwd: string, kubeconfig: string): Promise<string> {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], { cwd, env });
  return stdout;
}

// A folder in which a reader of the pages works: files of the repository, samples with the addresses of a local stack.
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SAMPLES } from '../../infra/tools/samples.ts';
import type { TestStack } from '../support/stack.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');

export interface PageDesk {
  readonly folder: string;
  /** The address of the gateway of `llm`, the instance of docs/samples/gateway.yaml. */
  readonly url: string;
  /** Runs commands in bash, which stops at the first that fails; returns what they print. */
  type(text: string, more?: Readonly<Record<string, string>>): Promise<string>;
}

export function openPageDesk({ endpoints, folder: state }: TestStack): PageDesk {
  const folder = temporaryFolder();
  for (const part of ['crds', 'infra', 'node_modules', 'package.json'])
    symlinkSync(join(ROOT, part), join(folder, part));
  symlinkSync(state, join(folder, '.gateway-operator'));
  const samples = join(folder, SAMPLES);
  mkdirSync(samples, { recursive: true });
  cpSync(join(ROOT, SAMPLES), samples, { recursive: true });
  const { database, gateway, upstream, kubeconfig } = endpoints;
  const url = `${gateway}/llm/llm`;
  const replaced: ReadonlyArray<readonly [from: string, to: string]> = [
    ['host: postgres.example.com', `host: "${database.host}:${database.port}"`],
    [', password: change-me, dbname: gateway', `, password: ${database.password}, dbname: ${database.dbname}`],
    [', sslmode: verify-full, sslrootcert: system', ', sslmode: disable, sslrootcert: ""'],
    ['host: rediss://redis.example.com, port: "6379", password: change-me', 'host: memory, port: "6379", password: ""'],
    // Counters in memory are of one process.
    ['  workload: { scale: { min: 2, max: 2 } }\n', ''],
    ['{ model: anthropic/claude-sonnet-4-5 }', `{ model: anthropic/claude-sonnet-4-5, apiBase: "${upstream}" }`],
    ['{ model: anthropic/claude-haiku-4-5 }', `{ model: anthropic/claude-haiku-4-5, apiBase: "${upstream}" }`],
    ['https://llm.example.com', url],
  ];
  for (const name of ['gateway.yaml', 'providers.yaml', 'developer.yaml']) {
    const path = join(samples, name);
    writeFileSync(
      path,
      replaced.reduce((text, [from, to]) => text.replaceAll(from, to), readFileSync(path, 'utf8')),
    );
  }
  return {
    folder,
    url,
    async type(text, more = {}) {
      const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: folder, ...more };
      const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', text], { cwd: folder, env });
      return stdout;
    },
  };
}

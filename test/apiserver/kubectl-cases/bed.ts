// What do the kubectl cases need of an API server, and how do they call kubectl?
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export type ApiServer = {
  /** A file for `kubectl`, of somebody who may do everything. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
};

export type Said = { readonly code: number; readonly out: string; readonly err: string };

export type Bed = {
  /** Runs kubectl; never throws. Objects given as input become documents on stdin. */
  kubectl(args: string, ...input: object[]): Promise<Said>;
  /** As above; throws with what kubectl said when it failed. Returns its output without the line end. */
  must(args: string, ...input: object[]): Promise<string>;
  /** The object as JSON. */
  get(args: string): Promise<Record<string, unknown> & { metadata: Record<string, unknown> }>;
  /** Repeats until kubectl's output fits, for at most half a minute. */
  until(args: string, fits: (said: Said) => boolean): Promise<Said>;
  /** Runs kubectl in the background; returns the lines so far, what it said beside them, and ends it. */
  follow(args: string): { lines(): string[]; errors(): string; end(): Promise<void> };
  remove(): void;
};

/** Arguments are split at blanks; what stands in single quotes is one. */
function split(args: string): string[] {
  return [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

export function createBed(kubeconfig: string): Bed {
  const home = mkdtempSync(join(tmpdir(), 'gateway-operator-kubectl-'));
  writeFileSync(join(home, 'nothing'), '');
  const env = { ...process.env, HOME: home, KUBECONFIG: kubeconfig, KUBECTL_COMMAND_HEADERS: 'false' };

  const kubectl = (args: string, ...input: object[]): Promise<Said> =>
    new Promise((resolve) => {
      const child = execFile(
        'kubectl',
        split(args),
        { env, timeout: 30_000, maxBuffer: 2 ** 26 },
        (error, out, err) => {
          resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, out, err });
        },
      );
      child.stdin?.end(input.map((object) => JSON.stringify(object)).join('\n'));
    });

  const must = async (args: string, ...input: object[]) => {
    const said = await kubectl(args, ...input);
    if (said.code !== 0) throw new Error(`kubectl ${args}: ${said.err}${said.out}`);
    return said.out.trimEnd();
  };

  return {
    kubectl,
    must,
    get: async (args) => JSON.parse(await must(`get ${args} -o json --show-managed-fields`)),
    async until(args, fits) {
      for (const end = Date.now() + 30_000; ; await pause(100)) {
        const said = await kubectl(args);
        if (fits(said)) return said;
        if (Date.now() > end) throw new Error(`kubectl ${args} still says: ${said.err}${said.out}`);
      }
    },
    follow(args) {
      const child = spawn('kubectl', split(args), { env, stdio: ['ignore', 'pipe', 'pipe'] });
      let [text, errors] = ['', ''];
      child.stdout.on('data', (chunk) => {
        text += chunk;
      });
      child.stderr.on('data', (chunk) => {
        errors += chunk;
      });
      return {
        errors: () => errors,
        lines: () => text.split('\n').filter((line) => line !== ''),
        end: () =>
          new Promise((resolve) => {
            if (child.exitCode !== null) return resolve();
            child.once('exit', () => resolve());
            child.kill();
          }),
      };
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

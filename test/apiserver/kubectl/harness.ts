// kubectl as the cases call it: a home of its own, and the API server's kubeconfig.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run, startChild } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';

export type ApiServer = {
  /** A file for `kubectl`, an administrator's. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
};

export type Result = { readonly code: number; readonly out: string; readonly err: string };

export type KubectlHarness = {
  /** Runs kubectl; never throws. Objects given as input become documents on stdin. */
  run(args: string, ...input: object[]): Promise<Result>;
  /** As above; throws with kubectl's output when it fails. Returns its standard output without the line end. */
  must(args: string, ...input: object[]): Promise<string>;
  /** The object as JSON. */
  get(args: string): Promise<Record<string, unknown> & { metadata: Record<string, unknown> }>;
  /** Repeats until kubectl's result fits. */
  until(args: string, fits: (result: Result) => boolean): Promise<Result>;
  /** Runs kubectl in the background: its lines so far, its errors, and the way to end it. */
  follow(args: string): { lines(): string[]; errors(): string; end(): Promise<void> };
  remove(): void;
};

/** Arguments are split at blanks; what is in single quotes is one. */
function split(args: string): string[] {
  return [...args.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

export function createKubectlHarness(kubeconfig: string): KubectlHarness {
  const home = mkdtempSync(join(tmpdir(), 'gateway-operator-kubectl-'));
  writeFileSync(join(home, 'nothing'), '');
  const env = { HOME: home, KUBECONFIG: kubeconfig, KUBECTL_COMMAND_HEADERS: 'false' };

  const kubectl = async (args: string, ...input: object[]): Promise<Result> => {
    const stdin = input.map((object) => JSON.stringify(object)).join('\n');
    const { code, stdout, stderr } = await run('kubectl', split(args), env, stdin);
    return { code, out: stdout, err: stderr };
  };

  const must = async (args: string, ...input: object[]) => {
    const result = await kubectl(args, ...input);
    if (result.code !== 0) throw new Error(`kubectl ${args}: ${result.err}${result.out}`);
    return result.out.trimEnd();
  };

  return {
    run: kubectl,
    must,
    get: async (args) => JSON.parse(await must(`get ${args} -o json --show-managed-fields`)),
    until: (args, fits) => eventually(() => kubectl(args), fits),
    follow(args) {
      const child = startChild('kubectl', split(args), { env: { ...process.env, ...env } });
      return {
        errors: child.stderr,
        lines: () =>
          child
            .stdout()
            .split('\n')
            .filter((line) => line !== ''),
        end: async () => void (await child.end()),
      };
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

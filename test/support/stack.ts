// The whole local stack in a test: a process, a state folder, `kubectl`.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI, { APIError } from 'openai';
import type { Endpoints } from '../../infra/platforms/local/stack.ts';
import { type Child, type ChildResult, run, startChild } from './child.ts';
import { openLeakDetector } from './secret-leak-detector.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface TestStack {
  readonly folder: string;
  readonly endpoints: Endpoints;
  /** The output of the process so far. */
  printed(): string;
  /** Runs the stock `kubectl` against this stack. */
  kubectl(args: ReadonlyArray<string>, stdin?: string): Promise<ChildResult>;
  /** Runs `kubectl`, which must succeed; returns its output. */
  ok(...args: ReadonlyArray<string>): Promise<string>;
  /** Runs a full resync; returns its report. */
  resync(): Promise<unknown>;
  /** An OpenAI client of the sample's gateway, with this key or the sample's. */
  client(apiKey?: string): Promise<OpenAI>;
  /** Every key and password that was in a Secret so far. */
  readonly secretValues: ReadonlySet<string>;
  /** The first characters of every value that objects, logs, plans or metrics show. */
  shown(): Promise<ReadonlyArray<string>>;
  /** Fails where a key or password was shown; then sends SIGTERM, and returns the exit code. */
  stop(): Promise<number>;
  /** Sends SIGKILL to the process alone, as the kernel does. */
  kill(): Promise<void>;
  /** Starts again on the same folder. */
  again(args?: ReadonlyArray<string>): Promise<TestStack>;
}

/** Starts the program of `npm start` with these options on free ports, and waits until it is ready. */
export async function startTestStack(
  args: ReadonlyArray<string> = [],
  folder = join(temporaryFolder(), 'state'),
): Promise<TestStack> {
  const child = launch(['--state', folder, '--port', '0', ...args]);
  const file = join(folder, 'endpoints.json');
  // A killed stack leaves its file: only the file of this process counts.
  const isReady = () => existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as Endpoints).pid === child.pid;
  await child.until(isReady);
  const endpoints = JSON.parse(readFileSync(file, 'utf8')) as Endpoints;
  const kubectl = (words: ReadonlyArray<string>, stdin?: string) =>
    run('kubectl', words, { KUBECONFIG: endpoints.kubeconfig }, stdin);
  const ok = async (...words: ReadonlyArray<string>) => {
    const { code, stdout, stderr } = await kubectl(words);
    const complaint = stderr.replace(/^(Warning:|No resources found).*\n/gm, '');
    if (code !== 0 || complaint !== '') throw new Error(`kubectl ${words.join(' ')}: ${code} ${stderr}`);
    return stdout;
  };
  const detector = await openLeakDetector(endpoints.kubeconfig);
  // The log file is created with its first line.
  const log = () => (existsSync(join(folder, 'stack.log')) ? readFileSync(join(folder, 'stack.log'), 'utf8') : '');
  const abbreviated = (found: ReadonlyArray<string>) => found.map((value) => `${value.slice(0, 6)}…`);
  const shown = async () => {
    const output = [child.printed(), log(), ...(await askedOf(endpoints))];
    return abbreviated(await detector.search(output).catch(() => detector.searchTexts(output)));
  };
  const mustBeSilent = (found: ReadonlyArray<string>) => {
    if (found.length > 0) throw new Error(`keys or passwords of Secrets are shown: ${found.join(', ')}`);
  };
  const end = async () => {
    const { code } = await child.ended;
    await detector.stop();
    mustBeSilent(abbreviated(detector.searchTexts([child.printed(), log()])));
    return code;
  };
  return {
    folder,
    endpoints,
    printed: child.printed,
    kubectl,
    ok,
    resync: async () => (await fetch(endpoints.reconcile, { method: 'POST' })).json(),
    client: async (apiKey) =>
      new OpenAI({
        apiKey: apiKey ?? (await ok('get', 'virtualkey', 'example-service', '-o', 'jsonpath={.status.keyValue}')),
        baseURL: `${endpoints.gateway}/default/sample`,
        maxRetries: 0,
      }),
    secretValues: detector.values,
    shown,
    stop: async () => {
      if (child.isRunning()) mustBeSilent(await shown());
      child.signal('SIGTERM');
      return end();
    },
    kill: async () => {
      child.signal('SIGKILL');
      await end();
    },
    again: (more = args) => startTestStack(more, folder),
  };
}

/** Plans and metrics of the functions, in every format; nothing from a function that is down. */
async function askedOf({ reconcile, gateway, admission }: Endpoints): Promise<ReadonlyArray<string>> {
  const ask = async (url: string, init: RequestInit = {}) =>
    (await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) })).text();
  const plan = `${reconcile}?dry-run=true`;
  const answers = await Promise.allSettled([
    ask(plan, { method: 'POST' }),
    ask(plan, { method: 'POST', headers: { accept: 'text/plain' } }),
    ask(new URL('/metrics', reconcile).href),
    ask(new URL('/metrics', gateway).href),
    run('curl', ['-sk', new URL('/metrics', admission).href]).then(({ stdout }) => stdout),
  ]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/** Runs the program to its end: for messages of a start that fails. */
export async function runStack(args: ReadonlyArray<string>): Promise<ChildResult> {
  return launch(args).ended;
}

function launch(args: ReadonlyArray<string>): Child {
  return startChild(process.execPath, ['infra/platforms/local/main.ts', ...args]);
}

/** A model entry `slow`: the sample upstream replies after a second, for several more. */
export const slowModel = ({ upstream }: Pick<Endpoints, 'upstream'>) => ({
  modelName: 'slow',
  identifier: 'slow',
  requiresAuth: false,
  gatewayParams: {
    model: 'openai/slow',
    apiBase: `${upstream}/v1`,
    inputCostPerMillionTokens: '1',
    outputCostPerMillionTokens: '1',
  },
});

/** A request that the sample's key may send. */
export const ASK = { model: 'sample-small', messages: [{ role: 'user' as const, content: 'Say hello.' }] };

/**
 * The answer to that request, or to the same of another model: 200 where it is paid, else the status and the code of
 * the refusal.
 */
export const answerTo = (openai: OpenAI, model = ASK.model): Promise<string> =>
  openai.chat.completions.create({ ...ASK, model }).then(
    () => '200',
    (error: unknown) => {
      if (error instanceof APIError && error.status !== undefined) return `${error.status} ${error.code}`;
      throw error;
    },
  );

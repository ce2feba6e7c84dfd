// How does a test run a Node bundle as its platform does: plain Node, an environment, signals?
import { type Child, startChild } from '../support/child.ts';

export interface NodeProcess {
  /** Where it listens, on the loopback. */
  readonly url: string;
  /** Where its metrics stand. */
  readonly metrics: string;
  readonly pid: number;
  printed(): string;
  /** Answers the exit code; null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface NodeRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

/** Waits until it says that it listens. Only this environment, and a PATH. */
export async function startNode(bundle: string, environment: Environment): Promise<NodeProcess> {
  const child = launch(bundle, [], { HOST: '127.0.0.1', PORT: '0', METRICS_PORT: '0', ...environment });
  const url = await child.prints(/"message":"listening".*"url":"([^"]+)"/);
  const [, metrics] = /"message":"listening","function":"[^"]+","metrics":"([^"]+)"/.exec(child.printed()) ?? [];
  const stop = async (signal?: NodeJS.Signals) => codeOf(await child.end(signal));
  return { url, metrics: `${metrics}/metrics`, pid: child.pid, stop, printed: child.printed };
}

/** What stands before /mutate and /validate in tests. */
export const ADMISSION_PATH = 'the-path-of-admission-in-tests';

/** What reconcile asks for in tests. */
export const RECONCILE_TOKEN = 'the-token-of-reconcile-in-tests';

export interface AdmissionProcess extends NodeProcess {
  /** The address, and the segment that only the API server is told. */
  readonly base: string;
}

export async function startAdmission(bundle: string, environment: Environment): Promise<AdmissionProcess> {
  const started = await startNode(bundle, { PATH_SECRETS: ADMISSION_PATH, ...environment });
  return { ...started, base: `${started.url}/${ADMISSION_PATH}` };
}

interface AskOptions extends RequestInit {
  readonly headers?: Environment;
}

export interface ReconcileProcess extends NodeProcess {
  /** Asks with the token: a resync, unless this says otherwise. */
  ask(init?: AskOptions, query?: string): Promise<Response>;
}

export async function startReconcile(bundle: string, environment: Environment): Promise<ReconcileProcess> {
  const started = await startNode(bundle, { RECONCILE_TOKEN, ...environment });
  const authorization = `Bearer ${RECONCILE_TOKEN}`;
  const ask = ({ headers, ...init }: AskOptions = {}, query = '') =>
    fetch(`${started.url}/${query}`, { method: 'POST', ...init, headers: { authorization, ...headers } });
  return { ...started, ask };
}

/** One resync of a process of its own; its report. Throws what it answered otherwise. */
export async function resyncOnce(bundle: string, environment: Environment): Promise<Resync> {
  const reconcile = await startReconcile(bundle, environment);
  const answer = await reconcile.ask();
  const text = await answer.text();
  const code = await reconcile.stop();
  if (!answer.ok || code !== 0) throw new Error(`${answer.status} ${text}, exit code ${code}: ${reconcile.printed()}`);
  return JSON.parse(text) as Resync;
}

export interface Resync {
  readonly observed: Readonly<Record<string, number>>;
  readonly actions: Readonly<Record<string, number>>;
  readonly failed: Readonly<Record<string, number>>;
  readonly certificate?: { readonly actions: ReadonlyArray<string> };
}

/** Runs it to its end. */
export async function runNode(bundle: string, args: readonly string[], environment: Environment): Promise<NodeRun> {
  const ended = await launch(bundle, args, environment).ended;
  return { code: codeOf(ended), stdout: ended.stdout, stderr: ended.stderr };
}

/** Everything that processes of this test file have printed. */
export const allPrinted = (): ReadonlyArray<string> => launched.map((child) => child.printed());
const launched: Child[] = [];

function launch(bundle: string, args: readonly string[], environment: Environment): Child {
  const child = startChild(process.execPath, [bundle, ...args], { env: { PATH: process.env.PATH, ...environment } });
  launched.push(child);
  return child;
}

const codeOf = ({ code, signal }: Awaited<Child['ended']>) => (signal === null ? code : null);

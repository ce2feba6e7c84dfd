// How does a test run our Workers in real workerd, which must trust the private CA of a cluster?
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { WorkerName } from '../../infra/platforms/cloudflare/workers.ts';

export interface WorkerOfTest {
  readonly name: WorkerName;
  /** A bundle. */
  readonly scriptPath: string;
  readonly bindings: Readonly<Record<string, string>>;
  /** Binding to the name of another of these Workers. */
  readonly services: Readonly<Record<string, string>>;
  /** Binding to `postgres://…`. */
  readonly hyperdrives?: Readonly<Record<string, string>>;
  /** KV namespaces, by binding, and what is in them. */
  readonly namespaces?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Has an address of its own, though another is the first. */
  readonly isDirect?: true;
}

export type HostOrder = { readonly order: 'scheduled'; readonly worker: string } | { readonly order: 'stop' };
export type HostAnswer =
  | { readonly url: string; readonly direct: string }
  | { readonly outcome: string }
  | { readonly error: string };

export interface RunningWorkers {
  /** Of the first Worker. */
  readonly url: string;
  /** The address of another Worker that has one of its own, by HTTP. */
  readonly direct: string;
  /** What the Workers have printed so far. */
  printed(): string;
  /** Fires the cron trigger of a Worker; answers `ok`, or `exception` when its handler threw. */
  scheduled(worker: string): Promise<string>;
  stop(): Promise<void>;
}

/** Where Workers are reached: on any free port and by HTTP, unless this says otherwise. */
export interface ListeningWorker {
  readonly port?: number;
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** The first Worker gets the public address. `ca` is a PEM file that workerd trusts in addition to its own. */
export async function startWorkers(
  workers: ReadonlyArray<WorkerOfTest>,
  ca: string,
  listening: ListeningWorker = {},
): Promise<RunningWorkers> {
  const host = fork(
    join(import.meta.dirname, 'miniflare-host.ts'),
    [JSON.stringify(workers), JSON.stringify(listening)],
    {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: ca },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    },
  );
  let printed = '';
  const collect = (chunk: Buffer) => {
    printed += chunk;
  };
  host.stdout?.on('data', collect);
  host.stderr?.on('data', collect);
  const answer = async (): Promise<HostAnswer> => {
    const ended = once(host, 'exit').then(() => [{ error: `miniflare ended:\n${printed}` }]);
    const [message] = await Promise.race([once(host, 'message'), ended]);
    if ('error' in message) throw new Error(message.error);
    return message;
  };
  const first = await answer();
  if (!('url' in first)) throw new Error('miniflare did not say its address');
  return {
    url: first.url,
    direct: first.direct,
    printed: () => printed,
    scheduled: async (worker) => {
      host.send({ order: 'scheduled', worker } satisfies HostOrder);
      const reply = await answer();
      return 'outcome' in reply ? reply.outcome : '';
    },
    stop: async () => {
      const ended = once(host, 'exit');
      host.send({ order: 'stop' } satisfies HostOrder);
      await ended;
    },
  };
}

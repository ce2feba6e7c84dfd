// A Redis for one test, which may kill, freeze and restart it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StoreConnection } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { type Child, startChild } from './child.ts';

export interface TestRedis {
  readonly connection: Extract<StoreConnection, { type: 'redis' }>;
  /** Sends SIGKILL; returns when the server is gone. */
  kill(): Promise<void>;
  /** Freezes the server, with connections open; returns a function that thaws it. */
  freeze(): () => void;
  /** Restarts the server on the same folder and port. */
  start(): Promise<void>;
  /** Deletes its files on disk. Call it while the server is stopped. */
  lose(): void;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** `REDIS_SERVER` names the program of all tests. */
const PROGRAMS = process.env.REDIS_SERVER ? [process.env.REDIS_SERVER] : ['redis-server', 'valkey-server'];

/** Why tests on a real Redis are skipped here; undefined when they can run. */
export function whyNoRedis(): string | undefined {
  if (programHere() !== undefined) return undefined;
  return 'there is no redis-server: `apt-get install redis-server`, `brew install redis`, or Valkey';
}

/** Valkey, which CI runs beside Redis (unpack-engines.sh). */
export const VALKEY = process.env.VALKEY ?? 'valkey-server';

/** Why tests on Valkey are skipped here; undefined when they can run. */
export const whyNoValkey = (): string | undefined =>
  runs(VALKEY) ? undefined : 'there is no valkey-server: name it by VALKEY (test/support/unpack-engines.sh)';

const runs = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

const programHere = (): string | undefined => PROGRAMS.find(runs);

/** The program of all tests. */
export function redisProgram(): string {
  const program = programHere();
  if (program === undefined) throw new Error(whyNoRedis());
  return program;
}

/**
 * `more`: further settings as on the command line, e.g. `['--requirepass', 'secret']`. Nothing is kept on disk by
 * default.
 */
export async function startRedis(
  more: ReadonlyArray<string> = [],
  password = '',
  program = redisProgram(),
): Promise<TestRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-redis-'));
  const port = await freePort(0, 'any');
  const settings = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--daemonize', 'no'];
  let child: Child | undefined;
  const kill = async (): Promise<void> => void (await child?.end('SIGKILL'));
  const start = async (): Promise<void> => {
    child = startChild(program, [...settings, ...more]);
    await child.until(() => accepts(port));
  };
  await start();
  return {
    connection: { type: 'redis', host: '127.0.0.1', port, password, tls: false },
    kill,
    freeze() {
      child?.signal('SIGSTOP');
      return () => child?.signal('SIGCONT');
    },
    start,
    lose() {
      for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    const answer = (is: boolean): void => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => answer(true));
    socket.once('error', () => answer(false));
  });
}

// A PgBouncer in transaction mode before a PostgreSQL: each transaction may run on another connection of the server.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { startChild } from './child.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** `PGBOUNCER` names the program where it is not in the PATH; Debian has it in /usr/sbin. */
const PROGRAMS = [process.env.PGBOUNCER ?? 'pgbouncer', '/usr/sbin/pgbouncer'];

const runs = (program: string): boolean => program !== '' && spawnSync(program, ['--version']).status === 0;

const programHere = () => PROGRAMS.find(runs);

/** The program of all tests. */
export function pgBouncerProgram(): string {
  const program = programHere();
  if (program === undefined) throw new Error(whyNoPgBouncer());
  return program;
}

/** A newer one, which CI runs beside Debian's (unpack-engines.sh). */
export const NEWER_PGBOUNCER = process.env.PGBOUNCER_NEWER ?? '';

/** Why tests behind the newer one are skipped here; undefined when they can run. */
export const whyNoNewerPgBouncer = (): string | undefined =>
  runs(NEWER_PGBOUNCER) ? undefined : 'PGBOUNCER_NEWER names no pgbouncer (test/support/unpack-engines.sh)';

/** Why tests behind PgBouncer are skipped here; undefined when they can run. */
export const whyNoPgBouncer = (): string | undefined =>
  programHere() === undefined
    ? 'there is no pgbouncer: `apt-get install pgbouncer`, or name it by PGBOUNCER'
    : undefined;

export interface TestPgBouncer {
  /** The same database behind the pooler. */
  behind(connection: DatabaseConnection): DatabaseConnection;
  /** Reads the passwords of the clients again. */
  reload(): void;
  /** All that PgBouncer printed. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Before the server of this superuser's connection, with at most so many connections to each of its databases.
 * `users`: a file with the passwords of the clients; absent: every client is accepted.
 */
export async function startPgBouncer(
  { host, port: behind, username, password }: DatabaseConnection,
  servers: number,
  users?: string,
  program = pgBouncerProgram(),
): Promise<TestPgBouncer> {
  const port = await freePort(0, 'any');
  const file = join(temporaryFolder(), 'pgbouncer.ini');
  // Settings are the defaults but for the mode and the numbers of connections.
  const lines = [
    '[databases]',
    `* = host=${host} port=${behind} user=${username} password=${password}`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    ...(users === undefined ? ['auth_type = any'] : ['auth_type = scram-sha-256', `auth_file = ${users}`]),
    'pool_mode = transaction',
    `default_pool_size = ${servers}`,
    'max_client_conn = 1000',
  ];
  writeFileSync(file, `${lines.join('\n')}\n`);
  // PgBouncer refuses to run as root.
  const child = startChild(program, [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), file]);
  await child.until(() => /process up/.test(child.printed()));
  return {
    behind: (connection) => ({ ...connection, host: '127.0.0.1', port }),
    reload: () => child.signal('SIGHUP'),
    log: child.printed,
    stop: async () => void (await child.end('SIGTERM')),
  };
}

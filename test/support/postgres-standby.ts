// A PostgreSQL with a synchronous standby that takes over, behind one address, as a failover manager keeps them.
import { spawnSync } from 'node:child_process';
import { appendFileSync, chownSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.ts';
import { query, startPostgres, type TestPostgres } from './postgres.ts';

export interface ReplicatedPostgres extends TestPostgres {
  /** Kills the primary and promotes the standby; returns when the new primary has a standby again. */
  failOver(): Promise<void>;
}

/** A standby dials again immediately, and finds the rows that it missed. */
const SETTINGS = ['wal_retrieve_retry_interval=100ms', 'wal_keep_size=256MB'];

/** Killing, freezing and starting are of the primary. */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  let primary = await startPostgres({ settings: SETTINGS });
  let standby = await startStandby(primary);
  const front = createServer((client) => {
    const server = connect(primary.connection.port, '127.0.0.1');
    client.pipe(server).pipe(client);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const { port } = front.address() as AddressInfo;
  return {
    get folder() {
      return primary.folder;
    },
    connection: { ...primary.connection, port },
    createDatabase: async () => ({ ...(await primary.createDatabase()), port }),
    query,
    kill: () => primary.kill(),
    freeze: () => primary.freeze(),
    start: () => primary.start(),
    async failOver() {
      const previous = primary;
      await previous.kill();
      await query(standby.connection, 'select pg_promote()');
      primary = standby;
      await previous.stop();
      standby = await startStandby(primary);
    },
    async stop() {
      front.close();
      await standby.stop();
      await primary.stop();
    },
  };
}

/** Returns when the primary waits for it with each commit. */
async function startStandby(primary: TestPostgres): Promise<TestPostgres> {
  const { connection } = primary;
  const existing = { password: connection.password, writeTo: (folder: string) => copyData(primary, folder) };
  const standby = await startPostgres({ settings: SETTINGS, existing });
  const states = async (state: string) =>
    (await query(connection, `select 1 from pg_stat_replication where ${state}`)).length > 0;
  await eventually(() => states(`state = 'streaming'`), Boolean);
  await query(connection, `alter system set synchronous_standby_names = '*'`);
  await query(connection, 'select pg_reload_conf()');
  await eventually(() => states(`sync_state = 'sync'`), Boolean);
  return standby;
}

/** Copies the data of a running server, and makes it that of its standby. */
async function copyData({ connection, folder }: TestPostgres, to: string): Promise<void> {
  const { host, port, username, password, dbname } = connection;
  const client = new pg.Client({ host, port, user: username, password, database: dbname });
  await client.connect();
  try {
    await client.query(`select pg_backup_start('standby', true)`);
    // Files may vanish meanwhile; the label below makes the copy whole.
    spawnSync('cp', ['-a', folder, to]);
    const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)');
    const { uid, gid } = statSync(join(folder, 'PG_VERSION'));
    rmSync(join(to, 'postmaster.pid'), { force: true });
    for (const [name, text] of Object.entries({ backup_label: rows[0]?.labelfile ?? '', 'standby.signal': '' })) {
      writeFileSync(join(to, name), text, { mode: 0o600 });
      chownSync(join(to, name), uid, gid);
    }
    const source = `host=${host} port=${port} user=${username} password=${password}`;
    appendFileSync(join(to, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  } finally {
    await client.end();
  }
}

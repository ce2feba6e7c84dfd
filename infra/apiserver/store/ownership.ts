// Is this process the only one that writes to the cluster's tables?
import type pg from 'pg';
import { tables } from './tables.ts';

/** What people read when a second process starts on the same state. */
const heldByAnother =
  'another process already runs the embedded cluster on this database; stop it first, or give this one a database of its own';

export type Ownership = {
  /** Runs SQL on the session that holds the lock: who lost the lock cannot write. Takes the lock (again) when needed. */
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Resolves once the lock is held, to the number of sessions used: when it grew, memory may be behind the tables. */
  ready(): Promise<number>;
  release(): Promise<void>;
};

/** One advisory lock per schema, held by one session for as long as the process runs. */
export function createOwnership(pool: pg.Pool): Ownership {
  let session: pg.PoolClient | undefined;
  let opening: Promise<pg.PoolClient> | undefined;
  let sessions = 0;

  async function open(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    client.on('error', () => drop(client));
    try {
      await lock(client);
      await client.query(tables);
    } catch (cause) {
      client.release(true);
      throw cause;
    }
    session = client;
    sessions++;
    return client;
  }

  function drop(client: pg.PoolClient): void {
    if (session !== client) return;
    session = undefined;
    client.release(true);
  }

  async function opened(): Promise<pg.PoolClient> {
    if (session !== undefined) return session;
    opening ??= open().finally(() => {
      opening = undefined;
    });
    return opening;
  }

  return {
    async query<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) {
      const client = await opened();
      try {
        return (await client.query<Row>(text, [...values])).rows;
      } catch (cause) {
        drop(client);
        throw new Error('writing to the embedded cluster’s tables', { cause });
      }
    },
    async ready() {
      await opened();
      return sessions;
    },
    async release() {
      if (session !== undefined) drop(session);
    },
  };
}

/** A killed predecessor's session ends within moments of its process: try for five seconds. */
async function lock(client: pg.PoolClient): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const { rows } = await client.query<{ got: boolean }>(
      `select pg_try_advisory_lock(hashtext('gateway-operator embedded cluster'), hashtext(current_schema())) as got`,
    );
    if (rows[0]?.got) return;
    if (attempt === 20) throw new Error(heldByAnother);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

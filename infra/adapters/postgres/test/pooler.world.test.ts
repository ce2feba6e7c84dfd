// All calls of PostgreSQL through a real PgBouncer in transaction mode, which has fewer connections than the process.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { DatabaseConnection } from '#core/ports/backends.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';
import { describeEpochs } from '#core/ports/test/epochs.promises.ts';
import { describeLedgerDatabase } from '#core/ports/test/ledger-database.promises.ts';
import { accountScenario, openLedgerDatabase } from '#core/ports/test/ledger-database.scenario.promises.ts';
import { describeLedgerRows } from '#core/ports/test/ledger-rows.promises.ts';
import { describeRegistry } from '#core/ports/test/registry.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { eventually } from '../../../../test/support/eventually.ts';
import { ONE_STORE } from '../../../../test/support/one-store.ts';
import {
  NEWER_PGBOUNCER,
  startPgBouncer,
  type TestPgBouncer,
  whyNoNewerPgBouncer,
  whyNoPgBouncer,
} from '../../../../test/support/pgbouncer.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { describeUnless } from '../../../../test/support/skip-unless.ts';
import { temporaryFolder } from '../../../../test/support/temporary-folder.ts';
import { createDatabase, type Database } from '../database.ts';
import { createSession } from '../session.ts';

/** Connections of PgBouncer to one database. One process opens up to eight. */
const SERVERS = 2;
const PROCESSES = 6;
const BATCHES = 5;
const INSTANCE = 'instance-1';
const random = (count: number): Uint8Array => crypto.getRandomValues(new Uint8Array(count));

const underOf = (database: Database) => ({
  database: database.ledgerDatabase(INSTANCE, random),
  epochs: database.epochs(INSTANCE, ONE_STORE),
  registry: database,
});

describeUnless(whyNoPgBouncer(), 'behind PgBouncer in transaction mode', () => {
  const pooled = describePooled();
  const migrated = async () => pooled.at(await pooled.server().migratedDatabase());

  describeRegistry('a database', async () => {
    const registry = await migrated();
    return { registry, policies: registry.policies };
  });
  describeLedgerRows('a database', async () => {
    const database = await migrated();
    const book = (uid: string, rows: ReadonlyArray<LedgerRow>) => bookLedgerRows(database, uid, rows);
    return { ledgerRows: database, book, registry: database };
  });
  describeEpochs('a database', async () => {
    const database = await migrated();
    return (user) => database.epochs(INSTANCE, user);
  });
  describeLedgerDatabase('a database', async () => underOf(await migrated()));
});

// The promises do not depend on the version: `npm run bench -- engines` has them behind this one too.
describeUnless(whyNoNewerPgBouncer(), 'behind a newer PgBouncer in transaction mode', () => {
  describePooled(NEWER_PGBOUNCER);
});

/** What only a pooler does; `program`: that of all tests, or another one. */
function describePooled(program?: string) {
  const open: Database[] = [];
  let server: SharedPostgres;
  let pooler: TestPgBouncer;
  beforeAll(async () => {
    server = await sharedPostgres();
    pooler = await startPgBouncer(server.connection, SERVERS, undefined, program);
  });
  afterAll(async () => {
    await Promise.all(open.map((database) => database.close()));
    await pooler?.stop();
  });
  const at = (connection: DatabaseConnection): Database => {
    const database = createDatabase(pooler.behind(connection), { log: createMemoryLog() });
    open.push(database);
    return database;
  };

  test('that checks passwords: a rotated password is read again, although its refusal is no code of a login', async () => {
    const users = join(temporaryFolder(), 'users.txt');
    const write = (password: string) => writeFileSync(users, `"gateway" "${password}"\n`, { mode: 0o644 });
    write('first');
    const strict = await startPgBouncer(server.connection, SERVERS, users, program);
    onTestFinished(strict.stop);
    const first = { ...strict.behind(server.connection), username: 'gateway', password: 'first' };
    const session = createSession(first, {
      log: createMemoryLog(),
      readLogin: () => ({ ...first, password: 'second' }),
    });
    onTestFinished(() => session.close());
    const select = () => session.query(30_000, 'select 1 as one');
    expect(await select()).toEqual([{ one: 1 }]);
    write('second');
    strict.reload();
    await eventually(
      () => strict.log(),
      (text) => /got SIGHUP/.test(text),
    );
    await session.disconnect();
    expect(await select()).toEqual([{ one: 1 }]);
  });

  test('processes with many more connections than the pooler book and look up at the same time', async () => {
    const connection = await server.createDatabase();
    // Other tests copy a schema; this one is made through the pooler.
    await at(connection).migrate();
    const processes = Array.from({ length: PROCESSES }, () => underOf(at(connection)));
    const [first] = processes;
    if (first === undefined) throw new Error('no process');
    await openLedgerDatabase(async () => first);
    const scenarios = processes.map((under) => accountScenario(() => under));
    const accounts = scenarios.map((_, place) => `00000000-0000-7000-8000-00000000000${place}`);
    for (let number = 1; number <= BATCHES; number += 1) {
      const bookings = scenarios.map((scenario, place) => scenario.book(accounts[place] ?? '', number, 1n, 2n));
      const looks = processes.flatMap(({ registry }) => Array.from({ length: 10 }, () => registry.claims(INSTANCE)));
      expect(new Set(await Promise.all(bookings))).toEqual(new Set(['booked']));
      expect((await Promise.all(looks)).flat()).toEqual([]);
    }
    expect(await scenarios.at(-1)?.spentOfOne()).toBe(BigInt(PROCESSES * BATCHES * 3));
    const used = await server.query(
      server.connection,
      `select pid from pg_stat_activity where datname = $1 and application_name = 'gateway-operator'`,
      [connection.dbname],
    );
    expect(used.length).toBeGreaterThan(0);
    expect(used.length).toBeLessThanOrEqual(SERVERS);
  });
  return { at, server: () => server };
}

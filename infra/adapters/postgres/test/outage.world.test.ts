import { createServer, type Server, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DatabaseUnreachable, SchemaMissing } from '#core/ports/backends.ts';
import { ledgerRowOf } from '#core/ports/test/ledger-row.fixture.ts';
import { scopeWrite } from '#core/ports/test/registry.scenario.promises.ts';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { bookLedgerRows } from '../../../../test/support/book-rows.ts';
import { inTime } from '../../../../test/support/in-time.ts';
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts';
import { createDatabase, type Database } from '../database.ts';

let server: TestPostgres;
const open: Database[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterAll(async () => {
  await Promise.all(open.map((database) => database.close()));
  await server.stop();
});

function databaseAt(connection: Parameters<typeof createDatabase>[0]): Database {
  const database = createDatabase(connection, { log: createMemoryLog() });
  open.push(database);
  return database;
}

const ledgerRow = ledgerRowOf();
const WINDOW = { scopeId: '00000000-0000-4000-8000-000000000001', window: { start: 0, end: 1 } };

const BATCH = { epoch: 1, account: { id: WINDOW.scopeId, batch: 1, callNumber: 1 }, storeCalls: 0 };
const ledgerDatabaseOf = (database: Database) =>
  database.ledgerDatabase('instance-1', (count) => new Uint8Array(count));

/** Calls that requests to the gateway wait for. */
const gatewayReads = {
  find: (database: Database) => database.policies('instance-1').find(['a'.repeat(64)]),
  sums: (database: Database) => database.sums([WINDOW]),
  sumsOfAccounts: (database: Database) => ledgerDatabaseOf(database).sums([WINDOW]),
  rows: (database: Database) => ledgerDatabaseOf(database).accountRows([WINDOW.scopeId]),
  countFirst: (database: Database) => ledgerDatabaseOf(database).countFirst([WINDOW]),
  'expired rows': (database: Database) => ledgerDatabaseOf(database).uncorrectedRows([WINDOW.scopeId]),
};
const otherCalls = {
  migrate: (database: Database) => database.migrate(),
  claims: (database: Database) => database.claims('instance-1'),
  putScope: (database: Database) => database.putScope(scopeWrite('billing')),
  retire: (database: Database) => database.retire([WINDOW.scopeId]),
  book: (database: Database) => bookLedgerRows(database, 'instance-1', [ledgerRow]),
  kindsOf: (database: Database) => database.bookedOf([ledgerRow.id]),
  bookBatch: (database: Database) => ledgerDatabaseOf(database).bookBatch({ ...BATCH, rows: [ledgerRow] }),
  close: (database: Database) =>
    ledgerDatabaseOf(database).close({
      epoch: 1,
      account: WINDOW.scopeId,
      figures: [],
      isLast: true,
      storeCalls: 0,
      at: 0,
    }),
};

/** The reconciler waits longer than the gateway: 5 s for a silent database. The rest is for a slow machine. */
const BOUND = 15_000;

/** The error of a call while the database is unreachable. */
async function outageOf(call: () => Promise<unknown>, bound = BOUND): Promise<DatabaseUnreachable> {
  const answer = call().then(
    (value) => new Error(`answered ${inspect(value)}`),
    (thrown: unknown) => thrown,
  );
  const error = await inTime(answer, bound);
  if (!(error instanceof DatabaseUnreachable)) throw error;
  return error;
}

/** Every call fails in time, and calls that the gateway waits for fail earlier. */
async function expectOutage(database: Database): Promise<void> {
  await Promise.all([
    ...Object.values(gatewayReads).map((call) => outageOf(() => call(database), 5_000)),
    ...Object.values(otherCalls).map((call) => outageOf(() => call(database))),
  ]);
}

test('an address where nobody listens is reported within a second, by every call', async () => {
  const listener = await listen(() => undefined);
  await listener.close();
  const database = databaseAt({ ...server.connection, port: listener.port });
  await expectOutage(database);
  const error = await outageOf(() => database.migrate());
  expect(error.message).toContain(`127.0.0.1:${listener.port}`);
});

test('an address that takes the connection and never speaks is reported within 2 s to the gateway, within 5 s to reconcile', async () => {
  const listener = await listen(() => undefined);
  await expectOutage(databaseAt({ ...server.connection, port: listener.port }));
  await listener.close();
});

test.each([
  ['HTTP', 'HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n'],
  ['SSH', 'SSH-2.0-server\r\n'],
  ['Redis', "-ERR unknown command '\r\n"],
  ['MySQL', 'J\u0000\u0000\u0000\n8.0.36\u0000'],
  ['silence after a byte', 'E'],
  ['zeros', '\u0000'.repeat(64)],
  ['noise', Buffer.from(Array.from({ length: 512 }, (_, place) => (place * 151 + 83) % 256))],
])('an address where something speaks %s is an outage, whatever it says', async (_, greeting) => {
  const listener = await listen((socket) => {
    socket.once('data', () => socket.end(greeting));
  });
  const connection = { ...server.connection, port: listener.port };
  for (const host of ['127.0.0.1', '0.0.0.0']) {
    const database = databaseAt({ ...connection, host });
    await outageOf(() => database.claims('instance-1'));
    await outageOf(() => database.policies('instance-1').find(['a'.repeat(64)]));
  }
  await listener.close();
});

test('an address that cannot be one is an outage', async () => {
  await outageOf(() => databaseAt({ ...server.connection, port: 70_000 }).claims('instance-1'));
  await outageOf(() => databaseAt({ ...server.connection, host: 'a b' }).claims('instance-1'));
});

test('a name that does not exist is an outage, not a crash', async () => {
  const error = await outageOf(() => databaseAt({ ...server.connection, host: 'nowhere.invalid' }).claims('i'));
  expect(error.message).toMatch(/nowhere\.invalid/);
});

describe.each<[string, (connection: TestPostgres['connection']) => TestPostgres['connection'], RegExp]>([
  [
    'a wrong password',
    (right) => ({ ...right, password: 'wr0ng-passw0rd' }),
    /refused the user "postgres".*check username and password/,
  ],
  ['an empty password where one is needed', (right) => ({ ...right, password: '' }), /password/],
  ['an unknown user', (right) => ({ ...right, username: 'nobody-here' }), /refused the user "nobody-here"/],
  ['a database that is not there', (right) => ({ ...right, dbname: 'absent' }), /has no database "absent": create it/],
])('%s', (_, wrong, words) => {
  test('is reported within a second, in words that say what to check', async () => {
    const error = await outageOf(() => databaseAt(wrong(server.connection)).migrate(), 5_000);
    expect(error.message).toMatch(words);
  });

  test('never shows a password, however deep one looks into the error', async () => {
    const connection = wrong(server.connection);
    const error = await outageOf(() => databaseAt(connection).migrate());
    const shown = inspect(error, { depth: 20, showHidden: true, getters: true });
    if (connection.password !== '') expect(shown).not.toContain(connection.password);
  });
});

test('a database without our schema yet is an outage that says who makes it', async () => {
  const database = databaseAt(await server.createDatabase());
  for (const call of Object.values({ ...gatewayReads, claims: otherCalls.claims })) {
    const error = await outageOf(() => call(database));
    expect(error).toBeInstanceOf(SchemaMissing);
    expect(error.message).toMatch(/no schema of the operator yet/);
  }
});

test('a closed database is an outage', async () => {
  const database = databaseAt(await server.createDatabase());
  await database.migrate();
  await database.close();
  await outageOf(() => database.claims('instance-1'));
});

test('calls on connections that were open when the server froze give up in time, and it works again when it thaws', async () => {
  const database = databaseAt(await server.createDatabase());
  await database.migrate();
  await bookLedgerRows(database, 'instance-1', [ledgerRow]);
  const thaw = server.freeze();
  try {
    await expectOutage(database);
    await outageOf(() => gatewayReads.find(database), 5_000);
  } finally {
    thaw();
  }
  expect(await bookLedgerRows(database, 'instance-1', [ledgerRow])).toEqual({ rejected: [] });
  expect((await database.bookedOf([ledgerRow.id])).get(ledgerRow.id)).toEqual([{ kind: 'settled', cost: 100n }]);
  expect((await database.sums(ledgerRow.scopeWindows)).map(({ spent }) => spent)).toEqual([ledgerRow.cost]);
});

test('after kill -9 of PostgreSQL calls are refused within a second; started again, it has everything and calls work by themselves', async () => {
  const database = databaseAt(await server.createDatabase());
  await database.migrate();
  const rows = Array.from({ length: 50 }, () => ledgerRowOf());
  await bookLedgerRows(database, 'instance-1', rows.slice(0, 49));
  const underWay = [bookLedgerRows(database, 'instance-1', rows), database.sums(ledgerRow.scopeWindows)].map((call) =>
    call.then(
      () => 'answered',
      (error: unknown) => (error instanceof DatabaseUnreachable ? 'unreachable' : error),
    ),
  );
  await server.kill();
  for (const outcome of await Promise.all(underWay)) expect(['answered', 'unreachable']).toContain(outcome);
  await expectOutage(database);
  await server.start();
  await bookLedgerRows(database, 'instance-1', rows);
  expect((await database.sums(ledgerRow.scopeWindows)).map(({ spent }) => spent)).toEqual([5000n]);
  expect((await database.bookedOf(rows.map(({ id }) => id))).size).toBe(50);
});

test('bookings repeated over kills of PostgreSQL count every entry exactly once', async () => {
  const database = databaseAt(await server.createDatabase());
  await database.migrate();
  const batches = Array.from({ length: 40 }, () => Array.from({ length: 25 }, () => ledgerRowOf({ cost: 1n })));
  let [done, booked] = [false, 0];
  const writer = async (own: typeof batches) => {
    for (const batch of own) {
      for (let isBooked = false; !isBooked; ) {
        isBooked = await bookLedgerRows(database, 'instance-1', batch).then(
          () => true,
          (error: unknown) => {
            if (!(error instanceof DatabaseUnreachable)) throw error;
            return new Promise<boolean>((resolve) => setTimeout(resolve, 20, false));
          },
        );
      }
      booked += 1;
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  };
  const killer = async () => {
    while (!done) {
      const before = booked;
      // However slow the machine: something is booked between two kills.
      do await new Promise((resolve) => setTimeout(resolve, 150));
      while (!done && booked === before);
      await server.kill();
      await server.start();
    }
  };
  const killing = killer();
  await Promise.all([0, 1, 2].map((turn) => writer(batches.filter((_, place) => place % 3 === turn))));
  done = true;
  await killing;
  expect((await database.sums(ledgerRow.scopeWindows)).map(({ spent }) => spent)).toEqual([1000n]);
});

async function listen(onSocket: (socket: Socket) => void): Promise<{ port: number; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const listener: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => listener.close(() => resolve()));
    },
  };
}

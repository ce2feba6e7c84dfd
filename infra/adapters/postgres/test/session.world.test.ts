import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMemoryLog } from '../../../../test/doubles/log.ts';
import { newAuthority } from '../../../../test/support/authority.ts';
import { startPostgres, type TestPostgres } from '../../../../test/support/postgres.ts';
import { type SharedPostgres, sharedPostgres } from '../../../../test/support/shared-servers.ts';
import { createSession, type Session } from '../session.ts';

/** Long enough for any machine: these tests do not measure time. */
const LIMIT = 30_000;
const open: Session[] = [];
let plain: SharedPostgres;
let tls: TestPostgres;
/** PEM texts of the authority that signed the server's certificate, and of another authority. */
let authority: string;
let stranger: string;
/** Of clients: signed by the authority that the server trusts, and by the other one. */
let client: { readonly cert: string; readonly key: string };
let strange: typeof client;

beforeAll(async () => {
  const [ours, other] = await Promise.all([newAuthority(), newAuthority()]);
  [authority, stranger] = [ours.cert, other.cert];
  const pair = await ours.sign('localhost');
  [client, strange] = await Promise.all([ours.sign('gateway'), other.sign('gateway')]);
  [plain, tls] = await Promise.all([sharedPostgres(), startPostgres({ tls: pair, clientAuthority: authority })]);
  await tls.query(tls.connection, 'create database for_certificates');
});

afterAll(async () => {
  await Promise.all(open.map((session) => session.close()));
  await tls.stop();
});

function sessionAt(connection: TestPostgres['connection']): Session {
  const session = createSession(connection, { log: createMemoryLog() });
  open.push(session);
  return session;
}

/** The same server by an address that does not count as loopback, like the address of a remote server. */
const elsewhere = (connection: TestPostgres['connection']) => ({ ...connection, host: '0.0.0.0' });
const isEncrypted = async (session: Session) => {
  const [row] = await session.run(LIMIT, (query) =>
    query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()'),
  );
  return row?.ssl;
};

test('a server elsewhere that offers TLS is spoken to with it', async () => {
  expect(await isEncrypted(sessionAt(elsewhere(tls.connection)))).toBe(true);
});

test('a server elsewhere without TLS is spoken to without, also when many calls learn it at the same time, and is warned of once', async () => {
  const log = createMemoryLog();
  const session = createSession(elsewhere(plain.connection), { log });
  open.push(session);
  expect(await Promise.all(Array.from({ length: 20 }, () => isEncrypted(session)))).toEqual(new Array(20).fill(false));
  const { host, port } = elsewhere(plain.connection);
  expect(log.lines).toEqual([
    { level: 'warn', message: expect.stringContaining('sslmode: require'), fields: { host, port } },
  ]);
});

test('a transaction sees what others commit before each of its statements, also if the database asks for more isolation', async () => {
  const connection = await plain.migratedDatabase();
  await plain.query(
    connection,
    `alter database "${connection.dbname}" set default_transaction_isolation = 'repeatable read'`,
  );
  const level = await sessionAt(connection).transaction(LIMIT, (query) => query('show transaction_isolation'));
  expect(level).toEqual([{ transaction_isolation: 'read committed' }]);
});

test('a session that rests while others call it serves all of them, and dials anew for a later call', async () => {
  const session = sessionAt(plain.connection);
  await session.query(LIMIT, 'select 1');
  const calls = Array.from({ length: 20 }, (_, place) =>
    session.query(LIMIT, 'select $1::int as place, pg_sleep(0.01)', [place]),
  );
  await session.disconnect();
  expect((await Promise.all(calls)).map(([row]) => row?.place)).toEqual([...calls.keys()]);
  expect(await session.query(LIMIT, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a database is not silent while this process stands still and reads nothing', async () => {
  const session = sessionAt(plain.connection);
  const limit = 1500;
  const answers = Array.from({ length: 3 }, () => session.query(limit, 'select 1 as one'));
  const until = performance.now() + 2 * limit;
  while (performance.now() < until);
  expect(await Promise.all(answers)).toEqual([[{ one: 1 }], [{ one: 1 }], [{ one: 1 }]]);
});

test('a server on this machine is spoken to without TLS where nobody asks for it', async () => {
  expect(await isEncrypted(sessionAt(tls.connection))).toBe(false);
});

type SslMode = Pick<TestPostgres['connection'], 'sslmode' | 'sslrootcert'>;

/** The outcome of a connection: `tls`, `plain`, or the error. */
async function outcomeOf(connection: TestPostgres['connection']): Promise<string> {
  const encrypted = isEncrypted(sessionAt(connection));
  return encrypted.then(
    (is) => (is === true ? 'tls' : 'plain'),
    (error: Error) => `${error.name}: ${error.message}`,
  );
}

const NOT_OFFERED = expect.stringMatching(/^DatabaseUnreachable: .* does not offer TLS, which sslmode requires/);
const NOT_VERIFIED = expect.stringMatching(/^DatabaseUnreachable: .* has a certificate that does not verify/);

describe('a connection is never less safe than its sslmode', () => {
  test.each<[NonNullable<SslMode['sslmode']>, unknown, unknown]>([
    ['disable', 'plain', 'plain'],
    ['prefer', 'tls', 'plain'],
    ['require', 'tls', NOT_OFFERED],
  ])('%s without certificates', async (sslmode, withTls, without) => {
    expect(await outcomeOf({ ...tls.connection, sslmode })).toEqual(withTls);
    expect(await outcomeOf({ ...plain.connection, sslmode })).toEqual(without);
  });

  test.each<[NonNullable<SslMode['sslmode']>, string, unknown]>([
    ['require', '127.0.0.1', 'tls'],
    ['verify-ca', '127.0.0.1', 'tls'],
    ['verify-ca', 'localhost', 'tls'],
    ['verify-full', '127.0.0.1', NOT_VERIFIED],
    ['verify-full', 'localhost', 'tls'],
  ])('%s with certificates of authorities, at %s', async (sslmode, host, trusted) => {
    const at = { ...tls.connection, host, sslmode };
    expect(await outcomeOf({ ...at, sslrootcert: authority })).toEqual(trusted);
    expect(await outcomeOf({ ...at, sslrootcert: `${stranger}\n${authority}` })).toEqual(trusted);
    expect(await outcomeOf({ ...at, sslrootcert: stranger })).toEqual(NOT_VERIFIED);
    const unsafe = { ...plain.connection, host, sslmode, sslrootcert: authority };
    expect(await outcomeOf(unsafe)).toEqual(NOT_OFFERED);
  });

  test('a rotated password is read again when a login is refused; open connections stay', async () => {
    const admin = plain.connection;
    await plain.query(admin, `create role rotated login password 'first'`);
    let login = { ...admin, username: 'rotated', password: 'first' };
    let reads = 0;
    const readLogin = () => {
      reads += 1;
      return { ...login, host: 'of.another.server' };
    };
    const session = createSession(login, { log: createMemoryLog(), readLogin });
    open.push(session);
    const user = () => session.query(LIMIT, 'select current_user as name');
    expect(await user()).toEqual([{ name: 'rotated' }]);
    await plain.query(admin, `alter role rotated password 'second'`);
    login = { ...login, password: 'second' };
    expect(await user()).toEqual([{ name: 'rotated' }]);
    expect(reads).toBe(0);
    await session.disconnect();
    const both = await Promise.all([user(), user()]);
    expect(both).toEqual([[{ name: 'rotated' }], [{ name: 'rotated' }]]);
    await plain.query(admin, `alter role rotated password 'third'`);
    await session.disconnect();
    await expect(user()).rejects.toThrow('refused the user "rotated"');
    // A wrong password in the Secret does not replace the login that the server accepted last.
    login = { ...login, password: 'wrong' };
    await expect(user()).rejects.toThrow('refused the user "rotated"');
    await plain.query(admin, `alter role rotated password 'second'`);
    expect(await user()).toEqual([{ name: 'rotated' }]);
  });

  test('a client certificate is shown to a server that requires one, in every mode with TLS', async () => {
    const at = { ...tls.connection, dbname: 'for_certificates', host: 'localhost' };
    const shown = { sslcert: client.cert, sslkey: client.key };
    for (const sslmode of ['prefer', 'require', 'verify-full'] as const) {
      const mode = { ...at, sslmode, ...(sslmode === 'verify-full' && { sslrootcert: authority }) };
      expect(await outcomeOf({ ...mode, ...shown }), sslmode).toBe('tls');
      expect(await outcomeOf(mode), sslmode).toContain('valid client certificate');
    }
    const unknown = { ...at, sslmode: 'require', sslcert: strange.cert, sslkey: strange.key } as const;
    expect(await outcomeOf(unknown)).toMatch(/^DatabaseUnreachable: /);
  });

  test.each(['sslcert', 'sslkey'] as const)('a value of %s that cannot be used is named', async (name) => {
    const broken = `-----BEGIN ${name === 'sslkey' ? 'PRIVATE KEY' : 'CERTIFICATE'}-----\nMIIB\n-----END`;
    const files = { sslrootcert: authority, sslcert: client.cert, sslkey: client.key, [name]: broken };
    expect(await outcomeOf({ ...tls.connection, sslmode: 'verify-full', ...files })).toMatch(
      /check the values of sslrootcert, sslcert and sslkey$/,
    );
  });

  test('a key that does not belong to its certificate is named', async () => {
    const mixed = { sslcert: client.cert, sslkey: strange.key };
    expect(await outcomeOf({ ...tls.connection, sslmode: 'require', ...mixed })).toContain('sslcert and sslkey');
  });

  test('the authorities of the system do not know ours', async () => {
    const at = { ...tls.connection, host: 'localhost', sslmode: 'verify-full', sslrootcert: 'system' } as const;
    expect(await outcomeOf(at)).toEqual(NOT_VERIFIED);
  });

  test('a platform that trusts its own authorities only asks no server that others must have signed', async () => {
    const at = { ...tls.connection, sslmode: 'verify-ca', sslrootcert: authority } as const;
    const session = createSession(at, { log: createMemoryLog(), trustsSystemOnly: true });
    open.push(session);
    await expect(isEncrypted(session)).rejects.toThrow('set sslrootcert to `system`');
  });
});

describe('a session', () => {
  test('answers a thousand calls at the same time over a handful of connections', async () => {
    const session = sessionAt(plain.connection);
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, place) =>
        session.run(LIMIT, (query) =>
          query<{ pid: number; place: number }>('select pg_backend_pid() as pid, $1::int as place', [place]),
        ),
      ),
    );
    expect(answers.map(([row]) => row?.place)).toEqual(answers.map((_, place) => place));
    expect(new Set(answers.map(([row]) => row?.pid)).size).toBeLessThanOrEqual(8);
  });

  test('rolls back what failed and keeps the connection, without a trace for whoever gets it next', async () => {
    const session = sessionAt(plain.connection);
    await session.run(4000, (query) => query('create table kept (n int primary key)'));
    const work = session.transaction(4000, async (query) => {
      await query('insert into kept values (1)');
      await query('insert into kept values (1)');
    });
    await expect(work).rejects.toThrow(/duplicate key/);
    expect(await session.run(4000, (query) => query('select * from kept'))).toEqual([]);
    expect(await session.run(4000, (query) => query(`show statement_timeout`))).toEqual([{ statement_timeout: '0' }]);
  });

  test('that cannot be rolled back reports why it failed, not that', async () => {
    const session = sessionAt(plain.connection);
    const work = session.transaction(LIMIT, async (query) => {
      const [row] = await query<{ pid: number }>('select pg_backend_pid() as pid');
      await plain.query(plain.connection, `select pg_terminate_backend(${row?.pid}, 5000)`);
      throw new Error('the true reason');
    });
    await expect(work).rejects.toThrow('the true reason');
  });

  test('is never left open on a connection that somebody else gets next', async () => {
    const session = sessionAt(plain.connection);
    const pid = async () => (await session.query<{ pid: number }>(LIMIT, 'select pg_backend_pid() as pid'))[0]?.pid;
    const first = await pid();
    expect(await pid()).toBe(first);
    await session.run(LIMIT, (query) => query('begin'));
    const second = await pid();
    expect(second).not.toBe(first);
    const failing = session.run(LIMIT, async (query) => {
      await query('begin');
      throw new Error('between two statements');
    });
    await expect(failing).rejects.toThrow('between two statements');
    expect(await pid()).not.toBe(second);
  });

  test('leaves no statement running on the server that its caller has given up', async () => {
    const session = sessionAt(plain.connection);
    // The server's own limit is the same: on a busy machine its refusal may be read first.
    await expect(session.transaction(300, (query) => query('select pg_sleep(30)'))).rejects.toThrow(
      /did not answer within 300 ms|gave up on a statement/,
    );
    const running = () =>
      plain.query(
        plain.connection,
        `select 1 from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'`,
      );
    await expect.poll(running).toEqual([]);
  });

  test('that comes too late for its caller gives its connection back', async () => {
    const session = sessionAt(plain.connection);
    const calls = Array.from({ length: 30 }, () =>
      session
        .run(200, (query) => query('select pg_sleep(0.15)'))
        .then(
          () => 'answered',
          () => 'given up',
        ),
    );
    const outcomes = await Promise.all(calls);
    // How many come in time is the machine's affair; that some do not is the point.
    expect(outcomes).toContain('given up');
    expect(await session.run(4000, (query) => query('select 1 as one'))).toEqual([{ one: 1 }]);
  });

  test('whose connections the server has ended while they lay there dials again, and no call notices', async () => {
    const log = createMemoryLog();
    // A database of its own: other files use the same server at the same time.
    const connection = await plain.createDatabase();
    const session = createSession(connection, { log });
    open.push(session);
    const ask = (text: string) => session.run(LIMIT, (query) => query<{ one: number }>(text));
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 8 }, () => ask('select pg_sleep(0.02)')));
      await plain.query(
        connection,
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask('select 1 as one')));
      expect(answers).toEqual(new Array(8).fill([{ one: 1 }]));
    }
    expect(JSON.stringify(log.lines)).not.toContain(connection.password);
  });

  test('whose server became a read-only standby dials again, and no call notices', async () => {
    const session = sessionAt(plain.connection);
    const write = () => session.transaction(LIMIT, (query) => query('create temporary table written (one integer)'));
    const readOnly = 'set session characteristics as transaction read only';
    await Promise.all(Array.from({ length: 4 }, () => session.query(LIMIT, `${readOnly}; select pg_sleep(0.05)`)));
    await expect(write()).resolves.toEqual([]);
  });

  test('whose new connections are read-only too says so, and works when they are not', async () => {
    const connection = await plain.migratedDatabase();
    const session = sessionAt(connection);
    const setReadOnly = (value: string) =>
      plain.query(
        plain.connection,
        `alter database "${connection.dbname}" set default_transaction_read_only = ${value}`,
      );
    const write = () => session.transaction(LIMIT, (query) => query('create table written (one integer)'));
    await setReadOnly('on');
    await expect(write()).rejects.toThrow('is read-only: point the instance to the primary');
    await setReadOnly('off');
    await expect(write()).resolves.toEqual([]);
  });

  test('reads nothing from the PG* variables of the environment', async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      PGPASSWORD: plain.connection.password,
      PGSSLMODE: 'require',
      PGUSER: 'other',
      PGDATABASE: 'other',
    });
    try {
      await expect(
        sessionAt({ ...plain.connection, password: '' }).run(4000, (query) => query('select 1')),
      ).rejects.toThrow(/password/);
      expect(await isEncrypted(sessionAt(plain.connection))).toBe(false);
    } finally {
      process.env = before;
    }
  });
});

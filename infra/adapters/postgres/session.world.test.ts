import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMemoryLog } from '../../../test/doubles/log.ts';
import { startPostgres, type TestPostgres } from '../../../test/postgres.ts';
import { createSession, type Session } from './session.ts';

/** Long enough for any machine: what is asked here is not how soon it answers. */
const LIMIT = 30_000;
const open: Session[] = [];
let plain: TestPostgres;
let tls: TestPostgres;

beforeAll(async () => {
  [plain, tls] = await Promise.all([startPostgres(), selfSigned().then((pair) => startPostgres({ tls: pair }))]);
});

afterAll(async () => {
  await Promise.all(open.map((session) => session.close()));
  await Promise.all([plain.stop(), tls.stop()]);
});

function sessionAt(connection: TestPostgres['connection']): Session {
  const session = createSession(connection, { log: createMemoryLog() });
  open.push(session);
  return session;
}

/** Reaches a server on loopback by an address that is not a loopback address, as one elsewhere would be. */
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

test('a server elsewhere without TLS is spoken to without, also when many calls learn it at once', async () => {
  const session = sessionAt(elsewhere(plain.connection));
  expect(await Promise.all(Array.from({ length: 20 }, () => isEncrypted(session)))).toEqual(new Array(20).fill(false));
});

test('a server on this machine is spoken to without TLS', async () => {
  expect(await isEncrypted(sessionAt(tls.connection))).toBe(false);
});

describe('a session', () => {
  test('answers a thousand calls at once over a handful of connections', async () => {
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

  test('leaves no statement running on the server that its caller has given up', async () => {
    const session = sessionAt(plain.connection);
    await expect(session.transaction(300, (query) => query('select pg_sleep(30)'))).rejects.toThrow(
      /did not answer within 300 ms/,
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
    const session = createSession(plain.connection, { log });
    open.push(session);
    const ask = (text: string) => session.run(LIMIT, (query) => query<{ one: number }>(text));
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(Array.from({ length: 8 }, () => ask('select pg_sleep(0.02)')));
      await plain.query(
        plain.connection,
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'gateway-operator'`,
      );
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask('select 1 as one')));
      expect(answers).toEqual(new Array(8).fill([{ one: 1 }]));
    }
    expect(JSON.stringify(log.lines)).not.toContain(plain.connection.password);
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

async function selfSigned(): Promise<{ cert: string; key: string }> {
  const keys = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const cert = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=a database',
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
    keys,
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: cert.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') };
}

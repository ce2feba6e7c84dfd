// A gateway with PostgreSQL, Redis and a provider at the address fd00::5, in a network that has no IPv4: `node
// serve-on-ipv6.ts GATEWAY` starts the bundle, sends a request, and prints its status and what is booked. Run it in a
// network of its own.
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDatabase } from '#adapters/postgres/database.ts';
import { startPostgres } from '../../infra/platforms/local/database/postgres.ts';
import { createChildren } from '../../infra/platforms/local/state/children.ts';
import { print } from '../../infra/runtime/node/process.ts';
import { createMemoryLog } from '../doubles/log.ts';
import { makeKey, mount } from '../ledger/chaos/harness.ts';
import { ask } from '../ledger/chaos/load.ts';
import { startUpstream } from '../ledger/chaos/upstream.ts';
import { startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/postgres.ts';
import { redisProgram } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startNode } from './node-process.ts';

const ADDRESS = 'fd00::5';
const folder = temporaryFolder();
const data = join(folder, 'data');
const password = randomBytes(9).toString('hex');
const server = await startPostgres({
  children: createChildren(join(folder, 'children')),
  folder: data,
  port: 5432,
  username: 'postgres',
  password,
  isDurable: false,
  files: { 'clients.conf': 'host all all all scram-sha-256\n' },
  settings: [`listen_addresses=${ADDRESS}`, `hba_file=${join(data, 'clients.conf')}`],
});
// Without a password it accepts only the loopback.
const settings = ['--port', '6379', '--bind', ADDRESS, '--requirepass', password, '--save', '', '--dir', folder];
const redis = startChild(redisProgram(), settings);
const upstream = await startUpstream(0, ADDRESS);
const connection = { ...server.connection, host: ADDRESS };
const database = createDatabase(connection, { log: createMemoryLog() });
await database.migrate();
const uid = randomUUID();
await database.openInstance({ uid, namespace: 'default', name: 'ipv6' });
const key = await makeKey(database, uid, 0, 10n ** 12n);

// What a person writes into the Secrets.
const environment = mount(folder, uid, upstream.url, connection, { host: `[${ADDRESS}]:6379`, port: 1, password });
const files = environment.DATABASE_DIR ?? '';
writeFileSync(join(files, 'host'), `[${ADDRESS}]:5432`);
rmSync(join(files, 'port'));
const JOURNAL_DIR = join(folder, 'journal');
mkdirSync(JOURNAL_DIR);
const gateway = await startNode(process.argv[2] ?? '', { ...environment, JOURNAL_DIR, HOST: '' });
const url = `http://[::1]:${new URL(gateway.url).port}`;
const reply = await ask(url, key, false);
if (reply.status !== 200) throw new Error(`${JSON.stringify({ ...reply, key: undefined })} ${gateway.printed()}`);
const booked = await eventually(
  () => query<{ cost: string }>(connection, 'select cost::text from gateway_operator.ledger_row'),
  (rows) => rows.length > 0,
);
print(JSON.stringify({ status: reply.status, booked: booked.map(({ cost }) => Number(cost) > 0) }));
await gateway.stop();
await database.close();
upstream.close();
await redis.end();
await server.stop();

// A Redis as a strict platform team runs it: TLS with a private authority, client certificates, and an ACL user that may
// do what docs/operate/redis.md lists, and nothing else.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { StoreConnection } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { documented } from '../platforms/documented.ts';
import { newAuthority } from './authority.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface StrictRedis {
  /** Without TLS, as the user `default`: for the test itself. */
  readonly server: TestRedis;
  readonly connection: Extract<StoreConnection, { type: 'redis' }>;
}

/** The words after `redis-cli` on the page. */
const toUser = (): string[] =>
  documented('docs/operate/redis.md', 'acl')
    .replace(/\\\n/g, ' ')
    .split(/\s+/)
    .slice(1)
    .map((word) => word.replace(/^'(.*)'$/, '$1'));

export async function startStrictRedis(): Promise<StrictRedis> {
  const folder = temporaryFolder();
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const authority = await newAuthority();
  const [own, client] = [await authority.sign('127.0.0.1'), await authority.sign('gateway')];
  const port = await freePort(0, 'any');
  const server = await startRedis([
    ...['--tls-port', `${port}`, '--tls-auth-clients', 'yes', '--tls-ca-cert-file', file('ca.crt', authority.cert)],
    ...['--tls-cert-file', file('tls.crt', own.cert), '--tls-key-file', file('tls.key', own.key)],
  ]);
  const admin = new Redis({ host: '127.0.0.1', port: server.connection.port, protocol: 2 });
  const [command = '', ...words] = toUser();
  await admin.call(command, ...words);
  admin.disconnect();
  const tls = { tls: true, ca: authority.cert, clientCertificate: client.cert, clientKey: client.key };
  const connection = { ...server.connection, port, username: 'gateway', password: 'change-me', ...tls };
  return { server, connection };
}

// A Redis as a strict platform team runs it: TLS with a private authority, client certificates, and an ACL user that may
// do what docs/operate/redis.md lists, and nothing else.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisAddress } from '#core/ports/backends.ts';
import { freePort } from '../../infra/platforms/local/state/ports.ts';
import { documented } from '../platforms/documented.ts';
import { newAuthority } from './authority.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface StrictRedis {
  /** Without TLS, as the user `default`: for the test itself. */
  readonly server: TestRedis;
  readonly connection: RedisAddress;
}

export interface StrictLogin {
  /** Settings of a server that takes TLS on this port. */
  settings(tlsPort: number): string[];
  /** How the operator logs in. */
  readonly login: Omit<RedisAddress, 'type' | 'host' | 'port'>;
}

/** The words of an ACL user on the page: its name and its rules. */
export const documentedUser = (name: string): string[] =>
  documented('docs/operate/redis.md', name)
    .replace(/\\\n/g, ' ')
    .replace(/^.* SETUSER /s, '')
    .split(/\s+/)
    .map((word) => word.replace(/^'(.*)'$/, '$1'));

/** One authority for all servers of a test, which have a certificate for this host. */
export async function newStrictLogin(host = '127.0.0.1'): Promise<StrictLogin> {
  const folder = temporaryFolder();
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const authority = await newAuthority();
  const [own, client] = [await authority.sign(host), await authority.sign('gateway')];
  const files = [
    ...['--tls-ca-cert-file', file('ca.crt', authority.cert), '--tls-cert-file', file('tls.crt', own.cert)],
    ...['--tls-key-file', file('tls.key', own.key), '--tls-auth-clients', 'yes'],
  ];
  const certificates = { ca: authority.cert, clientCertificate: client.cert, clientKey: client.key };
  return {
    settings: (tlsPort) => ['--tls-port', `${tlsPort}`, ...files],
    login: { username: 'gateway', password: 'change-me', tls: true, ...certificates },
  };
}

export async function startStrictRedis(): Promise<StrictRedis> {
  const { settings, login } = await newStrictLogin();
  const port = await freePort(0, 'any');
  const server = await startRedis([...settings(port), '--user', ...documentedUser('acl')]);
  return { server, connection: { ...server.connection, ...login, port } };
}

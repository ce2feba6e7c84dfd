// Connections to an instance's database and store, read from its Secrets through the Secret keys that its `keys`
// objects map (DESIGN 10, Host names).
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { err, ok, type Result } from '../failure/result.ts';
import { fromBase64 } from '../json/base64.ts';
import { ownMember } from '../json/json.ts';
import { type DatabaseConnection, type Server, SSL_MODES, type StoreConnection } from '../ports/backends.ts';

/**
 * The reason why the data of a Secret is no connection: the Secret key, and the problem with its value and what to do.
 */
export interface ConnectionProblem {
  readonly reason: 'SecretKeyMissing' | 'SecretKeyInvalid';
  readonly key: string;
  readonly problem: string;
}

type SecretData = Readonly<Record<string, string>>;

/** Files of a mounted database Secret; the gateway reads them in place of the Secret's own keys. */
export const DATABASE_FILES = [
  'host',
  'port',
  'username',
  'password',
  'dbname',
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
] as const;

/** Files of a mounted Redis Secret. */
export const STORE_FILES = [
  'host',
  'port',
  'password',
  'username',
  'ca',
  'clientCertificate',
  'clientKey',
  'sentinelMaster',
  'sentinelPassword',
] as const;
export type StoreFile = (typeof STORE_FILES)[number];

/** `data` as stored: base64. The host is `name` or `name:port`; an IPv6 address is in brackets. */
export function toDatabaseConnection(
  ref: GatewayInstanceSpec['databaseSecretRef'],
  data: SecretData,
): Result<DatabaseConnection, ConnectionProblem> {
  const { hostSecret, portSecret, usernameSecret, passwordSecret, dbnameSecret } = ref.keys;
  const absent = Object.values(ref.keys).find((name) => name !== undefined && ownMember(data, name) === undefined);
  if (absent !== undefined) return err(missing(absent));
  const long = findLong(data, [hostSecret, usernameSecret, passwordSecret, dbnameSecret]);
  if (long !== undefined) return err(long);
  const host = /^(\[[^\]]+\]|[^:]+)(?::([0-9]+))?$/.exec(read(data, hostSecret));
  if (host?.[1] === undefined) {
    return err(invalid(hostSecret, 'is not a host; write `name` or `name:port`, without a scheme'));
  }
  const portText = portSecret === undefined ? (host[2] ?? '5432') : read(data, portSecret);
  const port = toPort(portText);
  if (port === undefined)
    return err(invalid(portSecret ?? hostSecret, 'has no valid port; write a number from 1 to 65535'));
  const empty = [usernameSecret, dbnameSecret].find((name) => read(data, name) === '');
  if (empty !== undefined) return err(invalid(empty, 'is empty; write the name there'));
  const tls = toTls(ref.keys, data);
  if (!tls.ok) return tls;
  return ok({
    host: host[1].replace(/^\[(.*)\]$/, '$1'),
    port,
    username: read(data, usernameSecret),
    password: read(data, passwordSecret),
    dbname: read(data, dbnameSecret),
    ...tls.value,
  });
}

type DatabaseKeys = GatewayInstanceSpec['databaseSecretRef']['keys'];
type Tls = Pick<DatabaseConnection, 'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey'>;

/** TLS as libpq means it: `require` with certificates is `verify-ca`. */
function toTls(keys: DatabaseKeys, data: SecretData): Result<Tls, ConnectionProblem> {
  const { sslmodeSecret: modeKey, sslrootcertSecret: authoritiesKey, sslcertSecret, sslkeySecret } = keys;
  const long = [authoritiesKey, sslcertSecret, sslkeySecret].find(
    (key) => (encodedOf(data, key) ?? '').length > MAX_PEM,
  );
  if (long !== undefined) return err(invalid(long, LONG_PEM));
  const text = modeKey === undefined ? '' : read(data, modeKey);
  const sslrootcert = authoritiesKey === undefined ? '' : read(data, authoritiesKey).trim();
  const isSystem = sslrootcert === 'system';
  const sslmode = SSL_MODES.find((mode) => mode === text) ?? (isSystem && text === '' ? 'verify-full' : undefined);
  const isVerifying = sslmode === 'verify-ca' || sslmode === 'verify-full';
  if (modeKey !== undefined) {
    if (sslmode === undefined && text !== '') return err(invalid(modeKey, `must be one of ${SSL_MODES.join(', ')}`));
    if (isSystem && sslmode !== 'verify-full')
      return err(invalid(modeKey, `must be verify-full if ${authoritiesKey} is \`system\``));
    if (sslrootcert === '' && isVerifying) return err(invalid(authoritiesKey ?? modeKey, NO_AUTHORITIES));
  }
  if (authoritiesKey !== undefined && sslrootcert !== '' && !isSystem) {
    if (!CERTIFICATE.test(sslrootcert)) return err(invalid(authoritiesKey, 'must be certificates (PEM) or `system`'));
    if (!isVerifying && sslmode !== 'require') return err(invalid(modeKey ?? authoritiesKey, NO_MODE));
  }
  const client = toClientCertificate(sslcertSecret, sslkeySecret, data);
  if (!client.ok) return client;
  return ok({
    ...(sslmode === undefined ? {} : { sslmode }),
    ...(sslrootcert === '' ? {} : { sslrootcert }),
    ...(client.value && { sslcert: client.value.certificate, sslkey: client.value.key }),
  });
}

/** The client certificate, both of its parts or none. */
function toClientCertificate(
  certificateKey: string | undefined,
  keyKey: string | undefined,
  data: SecretData,
): Result<{ readonly certificate: string; readonly key: string } | undefined, ConnectionProblem> {
  if (certificateKey === undefined || keyKey === undefined) return ok(undefined);
  const [certificate, key] = [read(data, certificateKey), read(data, keyKey)];
  if (!CERTIFICATE.test(certificate)) return err(invalid(certificateKey, 'must be a certificate (PEM)'));
  if (!/-----BEGIN ((EC|RSA) )?PRIVATE KEY-----/.test(key))
    return err(invalid(keyKey, 'must be a private key (PEM) without a passphrase'));
  return ok({ certificate, key });
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----/;

/** Characters of base64: 64 KiB. Reading certificates takes time and memory that all instances share. */
const MAX_PEM = 4 * Math.ceil(65_536 / 3);

const LONG_PEM = 'must be at most 64 KiB; keep only what this server needs';

const NO_AUTHORITIES =
  'needs certificates to verify with: map sslrootcertSecret to a key with the certificates (PEM) of its authorities, or with `system` for verify-full';

const NO_MODE =
  'needs a mode that verifies with these certificates: map sslmodeSecret to a key with require, verify-ca or verify-full';

/**
 * The host is a list of names, each with or without a port (after `rediss://` for TLS), `https://…` (Upstash;
 * `http://` on loopback only), or the word `memory`.
 */
export function toStoreConnection(
  ref: GatewayInstanceSpec['redisSecretRef'],
  data: SecretData,
): Result<StoreConnection, ConnectionProblem> {
  const { hostSecret, portSecret, passwordSecret, usernameSecret, sentinelMasterSecret, sentinelPasswordSecret } =
    ref.keys;
  if (ownMember(data, hostSecret) === undefined) return err(missing(hostSecret));
  const names = [usernameSecret, sentinelMasterSecret, sentinelPasswordSecret].filter((key) => key !== undefined);
  const long = findLong(data, [hostSecret, passwordSecret, ...names]);
  if (long !== undefined) return err(long);
  const host = read(data, hostSecret);
  if (host === 'memory') return ok({ type: 'memory' });
  const files = neededStoreFiles(ref, data);
  const needed = files.flatMap((file) => ref.keys[`${file}Secret`] ?? []);
  const absent = needed.find((name) => ownMember(data, name) === undefined);
  if (absent !== undefined) return err(missing(absent));
  if (isUrl(host)) return toUpstash(hostSecret, host, read(data, passwordSecret));
  const port = files.includes('port') ? toPort(read(data, portSecret)) : 0;
  const [, scheme, list = ''] = /^(rediss?:\/\/)?(.*)$/s.exec(host) ?? [];
  const [server, ...otherServers] = list.split(',').map((text) => toServer(text, port ?? 0));
  if (server === undefined || !isComplete(otherServers)) return err(invalid(hostSecret, NO_HOST));
  if (port === undefined) return err(invalid(portSecret, 'is not a port; write a number from 1 to 65535'));
  if (otherServers.length >= MAX_SERVERS)
    return err(invalid(hostSecret, `must list at most ${MAX_SERVERS} servers; remove some`));
  const tls = scheme === 'rediss://';
  const certificates = toStoreCertificates(ref.keys, data, tls);
  if (!certificates.ok) return certificates;
  const username = usernameSecret === undefined ? '' : read(data, usernameSecret);
  const sentinelMaster = sentinelMasterSecret === undefined ? undefined : read(data, sentinelMasterSecret);
  if (sentinelMasterSecret !== undefined && sentinelMaster === '')
    return err(invalid(sentinelMasterSecret, 'is empty; write the name that the Sentinels have for the primary'));
  return ok({
    type: 'redis',
    ...server,
    ...(otherServers.length === 0 ? {} : { otherServers }),
    password: read(data, passwordSecret),
    ...(username === '' ? {} : { username }),
    tls,
    ...certificates.value,
    ...(sentinelMaster === undefined ? {} : { sentinelMaster }),
    ...(sentinelPasswordSecret === undefined ? {} : { sentinelPassword: read(data, sentinelPasswordSecret) }),
  });
}

/**
 * The files that a counter store of this Secret needs. A store in memory has no port and no password. Upstash is
 * reached by address and token only. Hosts that all have a port need no other port.
 */
export function neededStoreFiles(
  { keys }: Pick<GatewayInstanceSpec['redisSecretRef'], 'keys'>,
  data: SecretData,
): ReadonlyArray<StoreFile> {
  const host = read(data, keys.hostSecret);
  if (host === 'memory') return ['host'];
  if (isUrl(host)) return ['host', 'password'];
  return host.split(',').every((server) => PORT.test(server))
    ? STORE_FILES.filter((file) => file !== 'port')
    : STORE_FILES;
}

/** The port at the end of a server; an IPv6 address without brackets has none. */
const PORT = /(^(rediss?:\/\/)?[^:/]+|\]):[0-9]+$/;

/** All servers are asked concurrently. */
const MAX_SERVERS = 10;

const NO_HOST = 'is not a host; write a name or several (`a:26379,b:26379`), `rediss://name`, `https://…` or `memory`';

/** A server of the list: a name or an address, an IPv6 address in brackets, with or without a port. */
function toServer(text: string, defaultPort: number): Server | undefined {
  const [, host, portText] = /^([^/:,[\]]+|\[[^\]]+\])(?::([0-9]+))?$/.exec(text) ?? [];
  const port = portText === undefined ? defaultPort : toPort(portText);
  return host === undefined || port === undefined ? undefined : { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

const isComplete = (servers: ReadonlyArray<Server | undefined>): servers is ReadonlyArray<Server> =>
  !servers.includes(undefined);

type StoreKeys = GatewayInstanceSpec['redisSecretRef']['keys'];
type StoreCertificates = Pick<Extract<StoreConnection, { type: 'redis' }>, 'ca' | 'clientCertificate' | 'clientKey'>;

function toStoreCertificates(
  { hostSecret, caSecret, clientCertificateSecret, clientKeySecret }: StoreKeys,
  data: SecretData,
  tls: boolean,
): Result<StoreCertificates, ConnectionProblem> {
  const given = [caSecret, clientCertificateSecret, clientKeySecret].filter((key) => key !== undefined);
  const long = given.find((key) => (encodedOf(data, key) ?? '').length > MAX_PEM);
  if (long !== undefined) return err(invalid(long, LONG_PEM));
  if (!tls && given.length > 0)
    return err(invalid(hostSecret, 'has no TLS, but certificates are mapped; write `rediss://name`'));
  const ca = caSecret === undefined ? undefined : read(data, caSecret);
  if (caSecret !== undefined && !CERTIFICATE.test(ca ?? ''))
    return err(invalid(caSecret, 'must be certificates (PEM)'));
  const client = toClientCertificate(clientCertificateSecret, clientKeySecret, data);
  if (!client.ok) return client;
  return ok({
    ...(ca === undefined ? {} : { ca }),
    ...(client.value && { clientCertificate: client.value.certificate, clientKey: client.value.key }),
  });
}

/** The store with its hosts as Pods of `namespace` resolve them. */
export function withServiceHosts(store: StoreConnection, namespace: string): StoreConnection {
  if (store.type !== 'redis') return store;
  const resolve = <S extends Server>(server: S): S => ({ ...server, host: toServiceHost(server.host, namespace) });
  const { otherServers, ...others } = store;
  return { ...resolve(others), ...(otherServers && { otherServers: otherServers.map(resolve) }) };
}

/**
 * The host as Pods of `namespace` resolve it: a name without a dot is a Service there. `localhost` and addresses stay.
 */
export function toServiceHost(host: string, namespace: string): string {
  const isName = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/i.test(host) && host !== 'localhost';
  return isName ? `${host}.${namespace}.svc` : host;
}

const isUrl = (host: string) => /^https?:\/\//.test(host);

function toUpstash(key: string, text: string, token: string): Result<StoreConnection, ConnectionProblem> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const loopback = url !== undefined && /^(localhost|127\.[0-9.]+|\[::1\])$/.test(url.hostname);
  if (url === undefined || (url.protocol === 'http:' && !loopback)) {
    return err(invalid(key, 'is not a safe address; write `https://…` (`http://` on loopback only)'));
  }
  return ok({ type: 'upstash', url: text, token });
}

const encodedOf = (data: SecretData, key: string | undefined) => (key === undefined ? undefined : ownMember(data, key));

/** UTF-8 text of a base64 value. A trailing newline, which `echo` leaves, is not part of it. */
const read = (data: SecretData, key: string): string => fromBase64(ownMember(data, key) ?? '').replace(/\r?\n$/, '');

/** 8 KiB, in characters of base64. Tokens that are passwords have up to 4 KiB. */
const MAX_TEXT = 4 * Math.ceil(8192 / 3);

/** The first key whose value is longer than any name or password, before anything else is done with it. */
function findLong(data: SecretData, keys: ReadonlyArray<string>): ConnectionProblem | undefined {
  const long = keys.find((key) => (ownMember(data, key) ?? '').length > MAX_TEXT);
  return long === undefined ? undefined : invalid(long, 'must be at most 8 KiB; write only the name or the password');
}

function toPort(text: string): number | undefined {
  const port = Number(text);
  return /^[0-9]{1,5}$/.test(text) && port >= 1 && port <= 65_535 ? port : undefined;
}

const missing = (key: string): ConnectionProblem => ({
  reason: 'SecretKeyMissing',
  key,
  problem: 'is missing; add it to the data of the Secret',
});

const invalid = (key: string, problem: string): ConnectionProblem => ({
  reason: 'SecretKeyInvalid',
  key,
  problem,
});

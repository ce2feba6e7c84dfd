// Can an instance reach its database, its store and its models with what its Secrets hold?
import type { GatewayInstanceSpec } from '#crds/gateway-instance.ts';
import { type ConnectionProblem, toDatabaseConnection, toStoreConnection } from '../connections.ts';
import type { Finding } from '../finding.ts';
import { missingEntries, type ReadSecret, type SecretUse, secretNotFound, toMember } from './secret-entries.ts';

/** As much of a reference as names the Secret. */
interface SecretRef {
  readonly nameRef: string;
  readonly keys: SecretUse['keys'];
}

type DatabaseRef = GatewayInstanceSpec['databaseSecretRef'];
type StoreRef = GatewayInstanceSpec['redisSecretRef'];

/** The Secret is there, with every entry that the instance maps, and they are an address. */
export function judgeDatabaseSecret(ref: SecretRef, namespace: string, secret: ReadSecret): Finding[] {
  const use = toUse(ref, namespace, 'spec.databaseSecretRef');
  if (secret === undefined) return [secretNotFound(use)];
  const missing = missingEntries(use, secret);
  if (missing.length > 0) return missing;
  const connection = toDatabaseConnection(ref as DatabaseRef, secret.data);
  return connection.ok ? [] : invalidEntry(use, connection.failure);
}

/** The same. A store in memory has no port and no password, one at a URL no port: only what is missed is asked for. */
export function judgeStoreSecret(ref: SecretRef, namespace: string, secret: ReadSecret): Finding[] {
  const use = toUse(ref, namespace, 'spec.redisSecretRef');
  if (secret === undefined) return [secretNotFound(use)];
  const connection = toStoreConnection(ref as StoreRef, secret.data);
  if (connection.ok) return [];
  const { failure } = connection;
  return failure.reason === 'SecretEntryMissing' ? missingEntries(use, secret) : invalidEntry(use, failure);
}

/** The Secret of one model entry is there, with every entry that the model maps. */
export function judgeCredentials(ref: SecretRef, entry: Entry, namespace: string, secret: ReadSecret): Finding[] {
  const { index, identifier } = entry;
  const use = { ...toUse(ref, namespace, `spec.models[${index}].modelCredentials`), entry: identifier };
  return secret === undefined ? [secretNotFound(use)] : missingEntries(use, secret);
}

interface Entry {
  readonly index: number;
  readonly identifier: string | undefined;
}

const toUse = ({ nameRef: name, keys }: SecretRef, namespace: string, at: string): SecretUse => ({
  namespace,
  name,
  namePath: `${at}.nameRef`,
  keysPath: `${at}.keys`,
  keys,
});

/** Only a warning: a Secret may be corrected at any time, without the instance being applied again. */
function invalidEntry({ name, keysPath, keys }: SecretUse, { reason, entry, problem }: ConnectionProblem): Finding[] {
  if (reason === 'SecretEntryMissing') return [];
  const [member] = Object.entries(keys).find(([, mapped]) => mapped === entry) ?? [''];
  const message = `this entry of Secret ${JSON.stringify(name)} ${problem}`;
  return [{ rule: reason, path: `${keysPath}${toMember(member)}`, value: entry, message, effect: 'warn' }];
}

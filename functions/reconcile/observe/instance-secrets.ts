// What do the Secrets say that an instance names? Read once each, by name.
import { type ConnectionProblem, toDatabaseConnection, toServiceHost, toStoreConnection } from '#core/connections.ts';
import { type Finding, toProblem } from '#core/finding.ts';
import type { DatabaseConnection, StoreConnection } from '#core/ports/backends.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import { reasonOf } from '#core/reason.ts';
import type { Result } from '#core/result.ts';
import { checkDatabaseSecret, checkStoreSecret, type ReadSecret, type SecretData } from '#core/rules/secrets.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { Problem } from '../problem.ts';
import { each } from './each.ts';
import type { Look } from './look.ts';
import { dataOf } from './secrets.ts';

/** A Secret's data and which version of it, `undefined` for one that is not there, or why it could not be read. */
export type Read = { readonly data: SecretData | undefined; readonly version?: string } | { readonly unread: string };

const WIDTH = 8;

export async function readSecrets(
  { deps }: Look,
  { metadata, spec }: GatewayInstance,
): Promise<ReadonlyMap<string, Read>> {
  const names = new Set([
    spec.databaseSecretRef.nameRef,
    spec.redisSecretRef.nameRef,
    ...spec.models.flatMap(({ requiresAuth, modelCredentials }) =>
      requiresAuth && modelCredentials !== undefined ? [modelCredentials.nameRef] : [],
    ),
  ]);
  const read = await each(names, WIDTH, async (name): Promise<[string, Read]> => {
    try {
      const secret = await deps.cluster.get(RESOURCES.secrets, metadata.namespace, name);
      if (secret === undefined) return [name, { data: undefined }];
      return [name, { data: dataOf(secret), version: secret.metadata.resourceVersion ?? '' }];
    } catch (error) {
      return [name, { unread: reasonOf(error) }];
    }
  });
  return new Map(read);
}

/** What was found out about a Secret, as the rules ask; or why nothing was. People who read a condition may not read the Secret. */
export function toReadSecret(name: string, read: Read | undefined): { readonly secret: ReadSecret } | Problem {
  if (read !== undefined && 'unread' in read)
    return { reason: 'SecretUnreadable', message: `Secret "${name}" could not be read: ${read.unread}` };
  return { secret: read?.data && { data: read.data, listed: false } };
}

/** How a Secret of one kind is judged and read. */
interface Reader<Ref, Connection> {
  readonly judge: (ref: Ref, namespace: string, secret: ReadSecret) => ReadonlyArray<Finding>;
  readonly parse: (ref: Ref, data: SecretData) => Result<Connection, ConnectionProblem>;
}

/** What the Secret says, or what is wrong with it. */
function connectionIn<Ref extends { readonly nameRef: string }, Connection>(
  ref: Ref,
  namespace: string,
  secrets: ReadonlyMap<string, Read>,
  { judge, parse }: Reader<Ref, Connection>,
): Problem | Connection {
  const read = toReadSecret(ref.nameRef, secrets.get(ref.nameRef));
  if ('reason' in read) return read;
  const problem = toProblem(judge(ref, namespace, read.secret));
  if (problem !== undefined) return problem;
  const connection = parse(ref, read.secret?.data ?? {});
  // Judged a moment ago: not met.
  return connection.ok ? connection.value : { reason: connection.failure.reason, message: connection.failure.problem };
}

export interface Connections {
  readonly database: Problem | DatabaseConnection;
  readonly store: Problem | StoreConnection;
}

/** Where an instance's database and store are, as far as its Secrets tell. */
export function connectionsOf(
  { deps: { platform } }: Look,
  { metadata: { namespace }, spec }: GatewayInstance,
  secrets: ReadonlyMap<string, Read>,
): Connections {
  const resolved = <T extends Problem | DatabaseConnection | StoreConnection>(connection: T): T =>
    platform.inCluster && 'host' in connection
      ? { ...connection, host: toServiceHost(connection.host, namespace) }
      : connection;
  const database = connectionIn(spec.databaseSecretRef, namespace, secrets, {
    judge: checkDatabaseSecret,
    parse: toDatabaseConnection,
  });
  const store = connectionIn(spec.redisSecretRef, namespace, secrets, {
    judge: checkStoreSecret,
    parse: toStoreConnection,
  });
  return { database: resolved(database), store: resolved(store) };
}

/** Changes when one of these Secrets does, and tells nothing of what is in it. */
export const versionsOf = (names: readonly string[], secrets: ReadonlyMap<string, Read>): string =>
  names
    .map((name) => {
      const read = secrets.get(name);
      return read !== undefined && 'data' in read ? (read.version ?? '') : '';
    })
    .join('.');

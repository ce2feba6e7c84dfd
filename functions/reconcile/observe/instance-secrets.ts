// What do the Secrets say that an instance names? Read once each, by name.
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ReadSecret, SecretData } from '#core/rules/secret-entries.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { Problem } from '../world.ts';
import { each } from './each.ts';
import { type Look, reasonOf } from './look.ts';
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

/** Changes when one of these Secrets does, and tells nothing of what is in it. */
export const versionsOf = (names: readonly string[], secrets: ReadonlyMap<string, Read>): string =>
  names
    .map((name) => {
      const read = secrets.get(name);
      return read !== undefined && 'data' in read ? (read.version ?? '') : '';
    })
    .join('.');

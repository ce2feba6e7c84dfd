// What do the Secrets say that an instance names? Read once each, by name.
import { RESOURCES } from '#core/ports/cluster.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { Problem } from '../world.ts';
import { each } from './each.ts';
import { type Look, reasonOf } from './look.ts';
import { dataOf } from './secrets.ts';

export type Data = Readonly<Record<string, string>>;
/** A Secret's data, `undefined` for one that is not there, or why it could not be read. */
export type Read = { readonly data: Data | undefined } | { readonly unread: string };

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
      return [name, { data: secret === undefined ? undefined : dataOf(secret) }];
    } catch (error) {
      return [name, { unread: reasonOf(error) }];
    }
  });
  return new Map(read);
}

/** What is wrong with a Secret itself, before its entries are looked at. */
export function secretProblem(name: string, read: Read | undefined, what: string): Problem | undefined {
  if (read === undefined || ('data' in read && read.data === undefined)) {
    return {
      reason: 'SecretNotFound',
      message: `Secret "${name}" with ${what} is not there: create it in the namespace of the instance`,
    };
  }
  if ('unread' in read)
    return { reason: 'SecretUnreadable', message: `Secret "${name}" with ${what} cannot be read: ${read.unread}` };
  return undefined;
}

export const dataIn = (read: Read | undefined): Data => (read !== undefined && 'data' in read ? (read.data ?? {}) : {});

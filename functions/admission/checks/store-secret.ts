// Is the key-value store's Secret there, with every entry that its kind of store needs?
import { toStoreConnection } from '#core/connections.ts';
import type { GatewayInstanceSpec } from '#crds/gateway-instance.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { missingEntries, readSecret } from './secret-entries.ts';

type Ref = GatewayInstanceSpec['redisSecretRef'];

export const storeSecret: Check = async ({ object }, lookup) => {
  const ref = toView(InstanceView, object.spec).redisSecretRef;
  if (ref?.nameRef === undefined) return [];
  const use = {
    namespace: object.metadata.namespace,
    name: ref.nameRef,
    namePath: 'spec.redisSecretRef.nameRef',
    keysPath: 'spec.redisSecretRef.keys',
    keys: ref.keys,
  };
  const secret = await readSecret(use, lookup);
  if (!secret.found) return secret.findings;
  // A store in memory has no port and no password; one at a URL no port: only what is missed is asked for.
  const connection = toStoreConnection(ref as Ref, secret.data);
  if (connection.ok) return [];
  const { reason, entry, problem } = connection.failure;
  if (reason === 'SecretEntryMissing') return missingEntries(use, secret.data);
  return [{ rule: reason, path: use.keysPath, value: undefined, message: `entry ${entry} ${problem}`, effect: 'warn' }];
};

// Is the database Secret there, with every entry that the instance maps?
import { toDatabaseConnection } from '#core/connections.ts';
import type { GatewayInstanceSpec } from '#crds/gateway-instance.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { missingEntries, readSecret } from './secret-entries.ts';

type Ref = GatewayInstanceSpec['databaseSecretRef'];

export const databaseSecret: Check = async ({ object }, lookup) => {
  const ref = toView(InstanceView, object.spec).databaseSecretRef;
  if (ref?.nameRef === undefined) return [];
  const use = {
    namespace: object.metadata.namespace,
    name: ref.nameRef,
    namePath: 'spec.databaseSecretRef.nameRef',
    keysPath: 'spec.databaseSecretRef.keys',
    keys: ref.keys,
  };
  const secret = await readSecret(use, lookup);
  if (!secret.found) return secret.findings;
  const missing = missingEntries(use, secret.data);
  if (missing.length > 0) return missing;
  const connection = toDatabaseConnection(ref as Ref, secret.data);
  if (connection.ok || connection.failure.reason === 'SecretEntryMissing') return [];
  const { reason, entry, problem } = connection.failure;
  return [{ rule: reason, path: use.keysPath, value: undefined, message: `entry ${entry} ${problem}`, effect: 'warn' }];
};

// What does an instance in a test serve, and to whom?
import { toKeyValue } from '#core/keys/key-value.ts';
import type { Snapshot, SnapshotEntry } from '#core/models/snapshot.ts';
import { parseMoney } from '#core/money/money.ts';
import type { KeyPolicy, KeyRecord, ScopePolicy } from '#core/ports/policy.ts';
import { sizeOf } from '../doubles/policies.ts';
import { NOW } from './time.ts';

/** A key value of the right form, which the last 32 bytes of this text decide. */
export function keyValueOf(text: string): string {
  return toKeyValue(new TextEncoder().encode(text.padStart(32)).slice(-32));
}

export const KEY = keyValueOf('billing');

export function entry(modelName: string, differences: Partial<SnapshotEntry> = {}): SnapshotEntry {
  return {
    modelName,
    identifier: modelName,
    provider: 'openai',
    model: `real-${modelName}`,
    credentials: { apiKey: { secret: `${modelName}-secret`, secretKey: 'key' } },
    requiresAuth: true,
    // A dollar for a million is a thousand nano-dollars for one.
    price: { input: '1', output: '2' },
    weight: 1,
    priority: 0,
    ...differences,
  };
}

export function snapshotOf(models: ReadonlyArray<SnapshotEntry>, routing: Partial<Snapshot['routing']> = {}): Snapshot {
  return {
    version: 1,
    instance: { uid: 'uid', namespace: 'default', name: 'sample' },
    routing: {
      strategy: 'SimpleShuffle',
      retries: 2,
      timeouts: { connect: 100, firstByte: 1000, idle: 1000, total: 5000 },
      cooldown: { failures: 3, within: 30_000, duration: 30_000 },
      ...routing,
    },
    models: [...models],
  };
}

/** A key with a budget of one dollar, unless told otherwise. */
export function keyRecord(
  key: Partial<KeyPolicy> & { readonly limit?: string | undefined } = {},
  others: ReadonlyArray<ScopePolicy> = [],
): KeyRecord {
  const { limit = '1', ...differences } = key;
  const amount = parseMoney(limit);
  const policy: KeyPolicy = {
    scopeId: 'key-scope',
    kind: 'key',
    name: 'billing',
    blocked: false,
    models: [],
    ...(amount === undefined ? {} : { budget: { limit: String(amount), duration: '30d', alignment: 'Rolling' } }),
    anchor: NOW - 86_400_000,
    object: { namespace: 'default', name: 'billing' },
    chargedScopeIds: others.map(({ scopeId }) => scopeId),
    ...differences,
  };
  const scopes = [policy, ...others];
  return { key: policy, scopes, holderUid: 'uid', secret: `secret of ${policy.scopeId}`, size: sizeOf(scopes) };
}

export function scope(kind: 'user' | 'team', differences: Partial<ScopePolicy> = {}): ScopePolicy {
  return { scopeId: `${kind}-scope`, kind, name: `a ${kind}`, blocked: false, models: [], anchor: NOW, ...differences };
}

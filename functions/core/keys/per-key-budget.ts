// A further budget and limits for each key of a namespace (`perKey` of a key policy). Only the row of the namespace has
// them, so an edit of the key policy rewrites no row of a key.
import type { Hash } from '../ports/platform.ts';
import type { Budget, KeyRecord, NamespacePolicy, ScopeId, ScopePolicy, SpecRateLimits } from '../ports/policy.ts';
import { RATE_ROWS } from '../ports/rates.ts';
import { derivedScopeId } from './further-budgets.ts';

/** The policy of the namespace among the scopes of a key. */
export const namespaceOf = (scopes: ReadonlyArray<ScopePolicy>): NamespacePolicy | undefined =>
  scopes.find((scope): scope is NamespacePolicy => scope.kind === 'namespace');

/**
 * The record of a key with the budget of `perKey` as a further charged scope. Of each kind of rate it has the smaller
 * limit: that of the key, or that of `perKey`.
 */
export function withPerKey(record: KeyRecord, hash: Hash): KeyRecord {
  const namespace = namespaceOf(record.scopes);
  if (namespace?.perKey === undefined) return record;
  const { budget, limits } = namespace.perKey;
  const key = limits === undefined ? record.key : { ...record.key, limits: smallerOf(record.key.limits ?? {}, limits) };
  const [, ...others] = record.scopes;
  const ofKey = budget === undefined ? [] : [toScope(record, namespace, { budget, hash })];
  return { ...record, key, scopes: [key, ...others, ...ofKey] };
}

function toScope(
  { key, holderUid }: KeyRecord,
  namespace: NamespacePolicy,
  { budget, hash }: { readonly budget: Budget; readonly hash: Hash },
): ScopePolicy {
  const { sinceGeneration: _, ...window } = budget;
  return {
    scopeId: perKeyScopeId(hash, { namespace: namespace.scopeId, key: key.scopeId, holderUid, budget }),
    kind: 'key',
    name: key.name,
    blocked: false,
    models: [],
    budget: window,
    anchor: key.anchor,
    countedFrom: key.scopeId,
  };
}

/** The sources of the id of the scope: the namespace, the key, the VirtualKey that has the key, and the budget. */
interface PerKeyOwner {
  readonly namespace: ScopeId;
  readonly key: ScopeId;
  readonly holderUid: string;
  readonly budget: Budget;
}

/**
 * The id of the scope of the budget. If requests of the key may not have been charged to the scope for a while, the key
 * gets a scope with another id, whose window is counted from all that the key has spent (`countedFrom`). So the id
 * depends on `sinceGeneration`, which grows when the budget comes back or has another window. It also depends on the
 * holder, which changes when another VirtualKey adopts the key, possibly after a time in another namespace.
 */
export function perKeyScopeId(hash: Hash, { namespace, key, holderUid, budget }: PerKeyOwner): ScopeId {
  const { sinceGeneration = 0, duration, alignment } = budget;
  const source = [namespace, key, holderUid, sinceGeneration, duration, alignment];
  return derivedScopeId(hash, `policy scope\n${source.join('\n')}`);
}

function smallerOf(own: SpecRateLimits, other: SpecRateLimits): SpecRateLimits {
  const limitOf = (field: keyof SpecRateLimits) =>
    Math.min(own[field] ?? Number.POSITIVE_INFINITY, other[field] ?? Number.POSITIVE_INFINITY);
  const limits = RATE_ROWS.map(([, { specField }]) => [specField, limitOf(specField)] as const);
  return Object.fromEntries(limits.filter(([, limit]) => limit !== Number.POSITIVE_INFINITY));
}

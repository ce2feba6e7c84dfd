// Policies: the rights of a VirtualKey, and the budgets of its scopes. Written by the reconciler, read by the gateway
// by hash (DESIGN 7).
import type { Millis, Nano, Window } from './money.ts';

/** A claim row in PostgreSQL, never a Kubernetes uid (LEDGER 2). */
export type ScopeId = string;

/** The kinds of scopes that an alias claims. `namespace`: the alias is the name of a namespace. */
export type ClaimKind = 'key' | 'user' | 'team' | 'namespace';

/** `model`: a key's budget for one model. */
export type ScopeKind = ClaimKind | 'model';

export interface Budget {
  /** Nano-dollars as a decimal string: policies are stored as JSON, and JSON numbers are not exact. */
  readonly limit: string;
  /** `budgetDuration` as written. */
  readonly duration: string;
  /** `Calendar Europe/Berlin`: in that time zone. */
  readonly alignment: 'Rolling' | 'Calendar' | `Calendar ${string}`;
  /**
   * The object's generation at the last change of duration or alignment, or more. The windows after such a change are
   * new counters, because the store may have old figures for the same dates. Absent: never changed.
   */
  readonly sinceGeneration?: number | undefined;
}

/** The rate limits of a scope: per minute, and concurrent. An absent member is not limited. */
export interface SpecRateLimits {
  readonly rpmLimit?: number | undefined;
  readonly tpmLimit?: number | undefined;
  readonly maxParallelRequests?: number | undefined;
}

/** The policy of one scope. A scope without `budget` may spend without limit. */
export interface ScopePolicy {
  readonly scopeId: ScopeId;
  readonly kind: ScopeKind;
  /** The alias (key), e-mail (user), team alias, namespace or model name, as clients and 429s name it. */
  readonly name: string;
  /**
   * Only for kind `model`: the alias of the VirtualKey that has this budget. For kind `namespace`: the namespace and the
   * name of the instance.
   */
  readonly of?: string;
  readonly blocked: boolean;
  /** Empty = no restriction. Exact match against model names. */
  readonly models: ReadonlyArray<string>;
  readonly budget?: Budget | undefined;
  /** Absent: none. */
  readonly limits?: SpecRateLimits | undefined;
  /** Creation of the claim: the beginning of the first rolling window. */
  readonly anchor: Millis;
  /**
   * Only for the budget that a key policy gives each key (`perKey`): the scope of the key. What it spent in the window
   * before the budget was in force counts too (`LedgerDatabase.countFirst`).
   */
  readonly countedFrom?: ScopeId | undefined;
  /** The alias of a User. Alias, tags and metadata are for people only: no decision depends on them. */
  readonly alias?: string | undefined;
  readonly tags?: ReadonlyArray<string> | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** The policy of a VirtualKey. */
export interface KeyPolicy extends ScopePolicy {
  readonly kind: 'key';
  /** Absent = never. */
  readonly expiresAt?: Millis | undefined;
  /** The VirtualKey's namespace and name, for logs. */
  readonly object: { readonly namespace: string; readonly name: string };
  /** The scopes that are charged together with the VirtualKey: its User and its Teams. */
  readonly chargedScopeIds: ReadonlyArray<ScopeId>;
  /**
   * The reason why a charged scope of the VirtualKey is missing, as in its conditions (`TeamNotFound`): the VirtualKey
   * is blocked. Absent: not blocked, or blocked by a person.
   */
  readonly missingOwnerReason?: string | undefined;
  /** Further budgets of this VirtualKey, from which requests also spend. Absent: none. */
  readonly furtherBudgets?: ReadonlyArray<FurtherBudget> | undefined;
  /**
   * The Secret, in `object.namespace`, of a key that works after its VirtualKey is deleted (`deletionPolicy: Retain`).
   * The gateway does not use this.
   */
  readonly retained?: string;
  /**
   * The name of the VirtualKey's Secret, if the template names it: so that the Secret is found without the VirtualKey.
   * The gateway does not use this.
   */
  readonly secretName?: string | undefined;
}

/**
 * A budget of a VirtualKey for one model, or for all models in another window (`budgets`). It has the alignment and the
 * anchor of the VirtualKey's own budget, and needs one.
 */
export interface FurtherBudget extends Pick<Budget, 'limit' | 'duration' | 'sinceGeneration'> {
  readonly scopeId: ScopeId;
  /** Absent: all. */
  readonly model?: string | undefined;
}

/**
 * The policy of a namespace on an instance, for all keys of the namespace: the content of the key policy
 * that applies to it (`keyPolicies` of the instance). Without a key policy the namespace is charged without a limit.
 */
export interface NamespacePolicy extends ScopePolicy {
  readonly kind: 'namespace';
  /** The name of the key policy. Absent: none applies. */
  readonly policyName?: string | undefined;
  /** The Team of the key policy, which is charged together with the namespace. */
  readonly chargedScopeIds: ReadonlyArray<ScopeId>;
  /** The reason why that Team is missing: the namespace is blocked. Absent: it is not missing, or there is none. */
  readonly missingOwnerReason?: string | undefined;
  /** A further budget of each key of the namespace, and limits of each. Absent: none. */
  readonly perKey?: PerKey | undefined;
  /**
   * The largest `sinceGeneration` of the budgets that this row has had. A budget that is removed and comes back gets a
   * larger one: nothing was counted in its windows meanwhile.
   */
  readonly lastSince?: number | undefined;
}

export type PerKey = Pick<ScopePolicy, 'budget' | 'limits'>;

/** A change of a policy, whose other members do not change. */
export interface PolicyChange extends Pick<KeyPolicy, 'scopeId' | 'anchor' | 'blocked'> {
  readonly kind?: never;
  readonly retained?: string;
}

/** A policy as the reconciler keeps it: members that are only compared may be hashes (policy-digest.ts). */
export interface PolicyDigest
  extends Pick<KeyPolicy, 'budget' | 'furtherBudgets' | 'retained' | 'secretName'>,
    Pick<NamespacePolicy, 'policyName' | 'perKey' | 'lastSince'> {
  readonly [member: string]: unknown;
}

/**
 * The policies that belong to the hash of a key value: of the VirtualKey, and of all charged scopes, its own first. After
 * its User and Teams follow its namespace, and the Team of the namespace's key policy if it is not charged already.
 */
export interface KeyRecord {
  readonly key: KeyPolicy;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /** The uid of the VirtualKey that has the key's claim: another one has it after each adoption. */
  readonly holderUid: string;
  /**
   * A random secret of the claim, the same for all its key values. Only the database and gateways have it.
   */
  readonly secret: string;
  /** Bytes of the policies of all scopes as JSON. */
  readonly size: number;
}

/** A record that is not in the reply. */
export interface UnreadRecord extends Pick<KeyRecord, 'size'> {
  readonly key?: never;
  readonly scopes?: never;
  readonly holderUid?: never;
  readonly secret?: never;
}

/**
 * Undefined: the value is unknown, deleted or replaced by a rotation, or a charged scope has no policy. The
 * namespace of the key is always charged.
 */
export type FoundRecord = KeyRecord | UnreadRecord | undefined;

/** The gateway's view of the registry. */
export interface Policies {
  /**
   * Reads the records of live key values by the hex SHA-256 of their texts, in one query. Records are as large as
   * tenants can make them. Those above `maxSize` (absent: none) stay unread. If the others do not all fit into one
   * reply, the smallest are read, at least one; call again with the hashes of the rest.
   */
  find(hashes: ReadonlyArray<string>, maxSize?: number): Promise<ReadonlyMap<string, FoundRecord>>;
}

/** The identity of a counter: a scope in one of its windows. */
export interface ScopeWindow {
  readonly scopeId: ScopeId;
  readonly window: Window;
}

/** The text that identifies a counter: a scope in a window. */
export const counterKey = ({ scopeId, window }: ScopeWindow): string => `${window.start}/${window.end}/${scopeId}`;

export interface ScopeSpend extends ScopeWindow {
  readonly spent: Nano;
}

/** The budget of a scope in its window, with its spend. */
export interface RemainingBudget {
  readonly scope: ScopePolicy;
  readonly limit: Nano;
  readonly spent: Nano;
  /** Never below zero. */
  readonly remaining: Nano;
  readonly resetAt: Millis;
}

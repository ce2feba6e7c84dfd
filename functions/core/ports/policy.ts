// Policies: the rights of a VirtualKey, and the budgets of its scopes. Written by the reconciler, read by the gateway
// by hash (DESIGN 7).
import type { Millis, Nano, Window } from './money.ts';

/** A claim row in PostgreSQL, never a Kubernetes uid (LEDGER 2). */
export type ScopeId = string;

/** The kinds of scopes that an alias claims. */
export type ClaimKind = 'key' | 'user' | 'team';

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
   * Grows with each change of duration or alignment: the object's generation then, or more. Its windows are new
   * counters: the store may have old figures of the same dates. Absent: never changed.
   */
  readonly since?: number | undefined;
}

/** The rate limits of a scope: per minute, and concurrent. An absent member is not limited. */
export interface RateLimits {
  readonly rpmLimit?: number | undefined;
  readonly tpmLimit?: number | undefined;
  readonly maxParallelRequests?: number | undefined;
}

/** The policy of one scope. A scope without `budget` may spend without limit. */
export interface ScopePolicy {
  readonly scopeId: ScopeId;
  readonly kind: ScopeKind;
  /** The alias (key), e-mail (user), team alias or model name, as clients and 429s name it. */
  readonly name: string;
  /** Of a model: the alias of the key whose budget it is. */
  readonly of?: string;
  readonly blocked: boolean;
  /** Empty = no restriction. Exact match against model names. */
  readonly models: ReadonlyArray<string>;
  readonly budget?: Budget | undefined;
  /** Absent: none. */
  readonly limits?: RateLimits | undefined;
  /** Creation of the claim: where rolling windows are counted from. */
  readonly anchor: Millis;
  /** The alias of a user. Alias, tags and metadata are for people only: no decision depends on them. */
  readonly alias?: string | undefined;
  readonly tags?: ReadonlyArray<string> | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** A key's own policy, with the scopes that are charged beside it: its user and its teams. */
export interface KeyPolicy extends ScopePolicy {
  readonly kind: 'key';
  /** Absent = never. */
  readonly expiresAt?: Millis | undefined;
  /** The VirtualKey's namespace and name, for logs. */
  readonly object: { readonly namespace: string; readonly name: string };
  readonly charges: ReadonlyArray<ScopeId>;
  /**
   * The reason why a charged scope of the VirtualKey is missing, as in its conditions (`TeamNotFound`): the VirtualKey
   * is blocked. Absent: not blocked, or blocked by a person.
   */
  readonly missingOwnerReason?: string | undefined;
  /** Further budgets of this key, which requests spend from too. Absent: none. */
  readonly furtherBudgets?: ReadonlyArray<FurtherBudget> | undefined;
  /**
   * The Secret in `object.namespace` of a key that outlives its object (`deletionPolicy: Retain`). The gateway does not
   * use this.
   */
  readonly retained?: string;
}

/**
 * A budget of a key for one model, or for all in another window (`budgets`). It is aligned and anchored as the key's
 * own, without which there is none.
 */
export interface FurtherBudget extends Pick<Budget, 'limit' | 'duration' | 'since'> {
  readonly scopeId: ScopeId;
  /** Absent: all. */
  readonly model?: string | undefined;
}

/** A change of a key's policy, whose other members stay as they are. */
export interface PolicyChange extends Pick<KeyPolicy, 'scopeId' | 'anchor' | 'blocked'> {
  readonly kind?: never;
  readonly retained: string;
}

/** A policy as the reconciler keeps it: members that are only compared may be hashes (policy-digest.ts). */
export interface PolicyDigest extends Pick<KeyPolicy, 'budget' | 'furtherBudgets' | 'retained'> {
  readonly [member: string]: unknown;
}

/** A key as the gateway meets it: the policy of its hash and of every scope it is charged to (key first). */
export interface KeyRecord {
  readonly key: KeyPolicy;
  readonly scopes: ReadonlyArray<ScopePolicy>;
  /**
   * A secret of the key's claim, random and the same for as long as the claim exists, whatever its key values: nobody
   * but the database and gateways has it.
   */
  readonly secret: string;
  /** Bytes of the policies of all scopes as JSON. */
  readonly size: number;
}

/** A record that is not in the reply. */
export interface UnreadRecord extends Pick<KeyRecord, 'size'> {
  readonly key?: never;
  readonly scopes?: never;
  readonly secret?: never;
}

/** Undefined: the value is unknown, deleted or rotated away, or a scope that is charged has no policy. */
export type FoundRecord = KeyRecord | UnreadRecord | undefined;

/** The gateway's view of the registry. */
export interface Policies {
  /**
   * Answers by the hex SHA-256 of key values' texts, in one query: the records of live key values. Records are as large
   * as tenants can make them. Those above `maxSize` (absent: none) stay unread. If the others do not all fit into one
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

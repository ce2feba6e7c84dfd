// The registry: claims of aliases, live key values, policies. In PostgreSQL, written by reconcile only.
import type { Millis } from './money.ts';
import type { ClaimKind, KeyPolicy, ScopeId, ScopePolicy, ScopeWindow } from './policy.ts';

/** The Kubernetes object that holds a claim. */
export interface Holder {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * A key value that works: only its hash is ever stored. `notAfter` ends a rotated-away value's overlap. `asked`: what the
 * annotation that asks for a rotation said when the value was made: what was asked for then is done.
 */
export interface LiveValue {
  readonly hash: string;
  readonly createdAt: Millis;
  readonly notAfter?: Millis;
  readonly asked?: string;
}

/** One claimed alias of an instance: a scope with a ledger. `policy` is what the gateway acts on; absent until first written. */
export interface Claim {
  readonly scopeId: ScopeId;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder: Holder;
  /** Creation of the claim: the anchor of rolling windows and of a key's lifetime. */
  readonly anchor: Millis;
  /** The oldest first. */
  readonly values: ReadonlyArray<LiveValue>;
  readonly policy?: ScopePolicy | KeyPolicy;
}

export type Alias = Pick<Claim, 'kind' | 'alias'>;

/** What a user or team that has no value can show: it is called and stands as the holder did. Reconcile decides when that is enough. */
export const SAME_PLACE = 'same place';

/** A policy to write, made of the spec that the holder had at `generation`: where a later one is written already, this one is passed over. */
export interface PolicyWrite {
  readonly policy: ScopePolicy | KeyPolicy;
  readonly generation: number;
  /** The windows of changed `budgetDuration`s; their sums are made from entries in the same transaction (LEDGER 5). */
  readonly recounts?: ReadonlyArray<ScopeWindow>;
}

/** A scope as it is to be: whose alias it is, its policy, and one of its values. */
export interface ScopeWrite extends PolicyWrite {
  readonly instanceUid: string;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder: Holder;
  /**
   * Adoption. The hash of a live value of the claim: `holder` takes the claim over, spend and anchor included (DESIGN 10). Where nobody has
   * the alias, a retained claim with that value is taken over from wherever it is in this database, and gets the alias. A user
   * or team is taken over with `SAME_PLACE` by an object of the holder's namespace and name.
   */
  readonly proof?: string;
  readonly value?: ValueWrite;
}

/** A value to make live: known already, nothing; known from before, it keeps its age. */
export interface ValueWrite {
  readonly hash: string;
  /** What was asked for. Absent: what the value before it says stays. */
  readonly asked?: string | undefined;
  /** Nothing is written where this value lives in the claim: another run has published it meanwhile. */
  readonly unless?: string | undefined;
}

/**
 * | outcome | means |
 * |---|---|
 * | `written` | the alias is the holder's; the policy holds, unless a later one was there; the value lives |
 * | `taken` | somebody else has the alias, or the holder has it in another scope than the policy names |
 * | `value taken` | the same as `written`, but another live scope has the value |
 * | `overtaken` | the value `unless` lives: nothing was written |
 */
export type ScopeOutcome = 'written' | 'taken' | 'value taken' | 'overtaken';

export interface InstanceRow {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** The uid of the cluster's namespace kube-system: databases may be shared by clusters. Absent: not known. */
  readonly cluster?: string;
}

/** `same`: it is its own; `absent`: this database never heard of it; `adopted`: it goes on already, with the instance `by`. */
export type Adoption =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: 'same' | 'absent' | 'open' }
  | { readonly ok: false; readonly why: 'adopted'; readonly by: string };

/** `lost`: nobody can close it any more, for its cluster is gone: it counts as closed from now on. */
export interface Ledger {
  readonly uid: string;
  readonly lost: boolean;
}

export interface InstanceState {
  /** Whether it is recorded here, in our schema, and not closed. */
  readonly isOpen: boolean;
  /** What the database's clock says: the one that counts for `createdAt` and `notAfter`. */
  readonly now: Millis;
  /** Whose ledger it went on with, and since when. */
  readonly adopted?: { readonly from: string; readonly at: Millis };
}

/**
 * One database as reconcile uses it. Every call may be repeated: same arguments, same end state. All methods are about
 * one instance's rows (several instances may share a database). A refused or silent database throws
 * `DatabaseUnreachable` within 5 s.
 */
export interface Registry {
  /** Brings the schema to this version under an advisory lock, and answers it. A newer schema is left alone. */
  migrate(): Promise<{ readonly from: number; readonly to: number }>;
  /**
   * Records the instance (and reopens a row that was closed). With `ledger`, a closed instance of this database, it goes on with
   * what lived there until then: claims, values, sums. Their keys work again when their policies are written (a retained
   * key at once). Once: an instance that has claims of its own keeps those. Refused: nothing is recorded.
   */
  openInstance(instance: InstanceRow, ledger?: Ledger): Promise<Adoption>;
  /** Retires the instance's claims and values; the ledger stays. */
  closeInstance(uid: string): Promise<void>;
  /** All unretired claims of the instance, with values and policies, in one statement. */
  claims(instanceUid: string): Promise<ReadonlyArray<Claim>>;
  /** The same of these aliases only. */
  claimsOf(instanceUid: string, aliases: ReadonlyArray<Alias>): Promise<ReadonlyArray<Claim>>;
  /**
   * Claim, policy and value in one transaction. The first claim of (instance, kind, alias) wins, with the policy's scope id and anchor; the
   * holder of an existing claim wins it again. Calls at the same time share statements; one that PostgreSQL refuses fails alone.
   */
  putScope(write: ScopeWrite): Promise<ScopeOutcome>;
  /** Of an instance that is not recorded the clock alone. */
  instance(uid: string): Promise<InstanceState>;
  /** The open instances of a cluster. */
  openInstances(cluster: string): Promise<ReadonlyArray<InstanceRow>>;
  /**
   * These values no longer work; with `overlap`, from so much later on, by the database's clock. One that has an end already
   * keeps it.
   */
  retireValues(scopeId: ScopeId, hashes: ReadonlyArray<string>, overlap?: Millis): Promise<void>;
  /** The alias is free again and its values are dead; entries and sums stay. */
  retire(scopeIds: ReadonlyArray<ScopeId>): Promise<void>;
}

// The registry: claims of aliases, live key values, policies. In PostgreSQL, written by the reconciler only.
import type { Millis } from './money.ts';
import type {
  ClaimKind,
  KeyPolicy,
  NamespacePolicy,
  PolicyChange,
  PolicyDigest,
  ScopeId,
  ScopePolicy,
  ScopeWindow,
} from './policy.ts';

/** The Kubernetes object that holds a claim. */
export interface Holder {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * The holder of a namespace's claim: no object. The claim outlives the namespace, and a new namespace of that name has
 * it too, so that its spend never begins again.
 */
export const namespaceHolder = (namespace: string): Holder => ({ uid: 'namespace', namespace, name: namespace });

/**
 * A key value that works; only its hash is stored. `notAfter`: the end of the overlap of a replaced value. `rotation`,
 * of a value without an end: the text of the rotation annotation when it was made, so that this rotation is done.
 */
export interface LiveValue {
  readonly hash: string;
  readonly createdAt: Millis;
  readonly notAfter?: Millis;
  readonly rotation?: string;
}

/**
 * One claimed alias of an instance: a scope with a ledger. `policy` is the digest of the policy that the gateway acts
 * on, absent until first written: each tenant decides how large its policies are, and all claims are kept in memory.
 */
export interface Claim {
  readonly scopeId: ScopeId;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder: Holder;
  /** The uids of the last holders before it, by adoption: the last one first. Absent: none. */
  readonly previousHolders?: ReadonlyArray<string>;
  /** Creation of the claim: the anchor of rolling windows and of a key's lifetime. */
  readonly anchor: Millis;
  /** The oldest first. */
  readonly values: ReadonlyArray<LiveValue>;
  readonly policy?: PolicyDigest;
  /** Of a retained key: a user or team that it is charged to has retired. Absent: none has. */
  readonly isOwnerGone?: true;
}

/** The maximum number of retained keys of one namespace on one instance: no quota of Kubernetes counts them. */
export const MAX_RETAINED = 500;

/** The holder of a claim, and the Secret in which the claim is retained; undefined: it is not retained. */
export interface ObservedHolder {
  readonly uid: string;
  readonly retained: string | undefined;
}

export type Alias = Pick<Claim, 'kind' | 'alias'>;

/**
 * The proof for a User or a Team, which has no key value: the holder's namespace and name. The reconciler decides when
 * this proof is enough.
 */
export const SAME_PLACE = 'same place';

/**
 * The proof for a User or a Team whose alias was edited: the holder's uid. Its claim gets the new alias if no object
 * has it. The outcome is `taken`, because the policy names another scope: read the claim again.
 */
export const SAME_OBJECT = 'same object';

/**
 * A policy to write, made of the holder's spec at `generation`. The policy of a later generation is not overwritten.
 */
export interface PolicyWrite {
  readonly policy: ScopePolicy | KeyPolicy | NamespacePolicy | PolicyChange;
  readonly generation: number;
  /** Windows whose sums are made from ledger rows in the same transaction, after an edit of a duration (LEDGER 5). */
  readonly recounts?: ReadonlyArray<Recount>;
}

export interface Recount extends ScopeWindow {
  /** The scope whose ledger rows are counted. Default: `scopeId`. */
  readonly from?: ScopeId | undefined;
}

/** The desired scope: the holder of its alias, its policy, and one of its values. */
export interface ScopeWrite extends PolicyWrite {
  readonly instanceUid: string;
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly holder: Holder;
  /**
   * Adoption. The hash of a live value of the claim: `holder` takes the claim over, spend and anchor included (DESIGN
   * 10), if it is in the namespace of the claim's holder, or `formerHolders` has the uid of that holder: clients have
   * the value too. For a claim that is not retained, the uid of one of its previous holders is enough too: the cluster
   * was restored to before a move. If no object has the alias, a retained claim with that value, of any instance in
   * this database, is taken over and gets the alias; the namespace is enough only within one cluster. With
   * `SAME_PLACE`, the claim of a User or a Team is taken over by the object that has the holder's namespace and name.
   * With `SAME_OBJECT`, the claim that a User or a Team has gets the alias.
   */
  readonly proof?: string;
  /** Uids of the VirtualKeys that the Secret with the value was of. */
  readonly formerHolders?: ReadonlyArray<string>;
  readonly value?: ValueWrite;
  /** A later generation that the policy may overwrite: a restored cluster counts from a lower number again. */
  readonly overwrites?: number;
}

/** A key value to make live. A value that is live does not change; a value that was live before keeps its age. */
export interface ValueWrite {
  readonly hash: string;
  /** The text of the rotation annotation. Absent: the text of the previous value. */
  readonly rotation?: string | undefined;
  /** Nothing is written if this value is live in the claim: another run has published it meanwhile. */
  readonly unlessLive?: string | undefined;
  /**
   * Nothing is written if this value has ended in the claim: a rotation replaced it, or it no longer works while
   * another value without an end does.
   */
  readonly unlessEnded?: string | undefined;
}

/**
 * | outcome | means |
 * |---|---|
 * | `written` | the holder has the alias; the policy is written; the value is live |
 * | `taken` | another object has the alias, or the holder has it in another scope than the policy names |
 * | `value taken` | the same as `written`, but another live scope has the value |
 * | `too many` | the policy retains the key, and its namespace has `MAX_RETAINED` on this instance: nothing was written |
 * | `overtaken` | the value `unlessLive` is live, or `unlessEnded` has ended: nothing was written |
 * | `later` | the policy is of this later generation: nothing was written |
 */
export type ScopeOutcome = 'written' | 'taken' | 'value taken' | 'too many' | 'overtaken' | { readonly later: number };

export interface InstanceRow {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** The uid of the cluster's namespace kube-system: databases may be shared by clusters. Absent: not known. */
  readonly cluster?: string;
}

/**
 * `same`: the ledger is the instance's own; `absent`: the ledger is not in this database; `open`: its instance is not
 * closed; `adopted`: the instance `successor` already continues it.
 */
export type Adoption =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: 'same' | 'absent' | 'open' }
  | { readonly ok: false; readonly why: 'adopted'; readonly successor: string };

/**
 * The ledger of an earlier instance. `isMissing`: its cluster no longer exists, so the instance counts as closed.
 */
export interface PreviousLedger {
  readonly uid: string;
  readonly isMissing: boolean;
}

export interface InstanceState {
  /** Whether the instance is recorded here, in our schema, and not closed. */
  readonly isOpen: boolean;
  /** The database's clock, which counts for `createdAt` and `notAfter`. */
  readonly now: Millis;
  /** Whether the instance has claims. */
  readonly hasClaims: boolean;
  /** The namespace and the name that it is recorded with; absent: it is not recorded. */
  readonly place?: { readonly namespace: string; readonly name: string };
  /** The instance whose ledger this one continued, and since when. */
  readonly predecessor?: { readonly uid: string; readonly since: Millis };
}

/**
 * One database as the reconciler uses it. Every call may be repeated: same arguments, same end state. All methods are
 * about one instance's rows (several instances may share a database). If the database refuses or does not answer, they
 * throw `DatabaseUnreachable` within 5 s.
 */
export interface Registry {
  /**
   * Migrates the schema to this version under an advisory lock, and returns both versions. A newer schema is left
   * alone.
   */
  migrate(): Promise<{ readonly from: number; readonly to: number }>;
  /**
   * Records the instance (and reopens a row that was closed). With `ledger`, a closed instance of this database, the
   * new instance continues all that was live there: claims, values, sums. Their keys work again when their policies are
   * written (a retained key immediately). An instance that already has claims keeps its own. Refused: nothing is
   * recorded.
   */
  openInstance(instance: InstanceRow, ledger?: PreviousLedger): Promise<Adoption>;
  /**
   * Retires the instance's claims and values; the ledger stays. Throws if there are more claims than one call may
   * retire: call again.
   */
  closeInstance(uid: string): Promise<void>;
  /**
   * All unretired claims of the instance, with values and the digests of policies. The digest of a retained key has
   * only `retained` and `blocked`: `claimsOf` reads the whole one, which its adoption needs.
   */
  claims(instanceUid: string): Promise<ReadonlyArray<Claim>>;
  /** The unretired claims of namespaces only. */
  namespaceClaims(instanceUid: string): Promise<ReadonlyArray<Claim>>;
  /** Unretired claims of these aliases only. */
  claimsOf(instanceUid: string, aliases: ReadonlyArray<Alias>): Promise<ReadonlyArray<Claim>>;
  /**
   * Writes claim, policy and value in one transaction. The first claim of (instance, kind, alias) wins, with the
   * policy's scope id and anchor; the holder of an existing claim wins it again. Concurrent calls share statements; a
   * call that PostgreSQL refuses fails alone.
   */
  putScope(write: ScopeWrite): Promise<ScopeOutcome>;
  /** The state of the instance; only the clock if the instance is not recorded. */
  instance(uid: string): Promise<InstanceState>;
  /** The instances of a cluster that are open, or that have unretired claims. */
  openInstances(cluster: string): Promise<ReadonlyArray<InstanceRow>>;
  /**
   * Ends these values: immediately, or after `overlap` by the database's clock. A value that has an end keeps it.
   * `observed`: as in `retire`.
   */
  endValues(
    scopeId: ScopeId,
    hashes: ReadonlyArray<string>,
    overlap?: Millis,
    observed?: ObservedHolder,
  ): Promise<boolean>;
  /** Removes a value that nobody ever had, because no Secret was written with it. */
  removeValue(scopeId: ScopeId, hash: string): Promise<void>;
  /**
   * Frees the aliases and ends their values; ledger rows and sums stay. `observed`: only of claims that still have this
   * holder, since a caller reads claims long before it retires them; false: a claim has another holder, or is retained
   * meanwhile, and stays.
   */
  retire(scopeIds: ReadonlyArray<ScopeId>, observed?: ObservedHolder): Promise<boolean>;
}

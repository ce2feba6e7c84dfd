// The actions of a run as plain data: planned, carried out by act.ts, or printed by a dry run.
import { type OtherReason, type Reason, rowOf, type Severity } from '#core/conditions/reasons.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { ObservedHolder, PolicyWrite, PreviousLedger } from '#core/ports/registry.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import type { OwnerReference } from '#crds/names/object-meta.ts';
import type { WorkloadObjectKind } from './workload/workload-objects.ts';
import {
  type ActionKind,
  aliasOf,
  idOf,
  instancePathOf,
  type OwnObject,
  type Path,
  type Problem,
  type ScopeObject,
} from './world.ts';

/** The object of an action, and why the action is done: a sentence that never contains a key value. */
interface ActionObject<Kind = KindName> {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

/** A claim, and the instance in whose database it is. */
interface ActionClaim {
  readonly instance: Path;
  readonly claimKind: ClaimKind;
  readonly alias: string;
}

/** The addresses of an instance: for its clients, and inside the cluster. Both are known, or none. */
export interface InstanceAddress {
  readonly url: string | undefined;
  readonly internalURL: string | undefined;
}

/** Labels, annotations and data of a VirtualKey's Secret. */
export interface SecretShape {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /**
   * Texts as the author wrote them, by name. A placeholder in a text may become 2,048 characters, and thousands of
   * Secrets are planned.
   */
  readonly data: Readonly<Record<string, string>>;
  /** For the placeholders in `data`. */
  readonly address: InstanceAddress;
}

/** Labels and annotations to write; `null`: to remove. */
export type SecretMarks = {
  readonly [part in 'labels' | 'annotations']: Readonly<Record<string, string | null>>;
};

/** A value of a VirtualKey that begins to work. */
export interface ScopeValue {
  /** Absent: a new value, which the Secret will hold. */
  readonly hash?: string | undefined;
  readonly rotation?: string | undefined;
  /**
   * A value that the Secret holds and that was not in the claim. If it works by now, another run has published it, and
   * nothing is written.
   */
  readonly unlessLive?: string | undefined;
  /** A value that is restored from the Secret. If it was ended on purpose, nothing is written. */
  readonly unlessEnded?: string | undefined;
}

/** The details of each action, in addition to its object. */
interface ActionDetails {
  readonly AddFinalizer: object;
  /** `notCleanedUp`: what stays in the database. */
  readonly RemoveFinalizer: { readonly notCleanedUp?: string | undefined };
  /** `ledger`: of a closed instance, which this instance continues. */
  readonly OpenInstance: { readonly ledger: PreviousLedger | undefined };
  readonly CloseInstance: object;
  /** Another instance in the same database, whose object is gone. */
  readonly CloseOrphan: { readonly uid: string };
  readonly PublishSnapshot: { readonly snapshot: string };
  /** Into the store that gateways outside the cluster read. */
  readonly PushSnapshot: { readonly snapshot: string };
  readonly DeleteSnapshot: { readonly snapshot: string; readonly uid: string };
  /** By server-side apply. `uid`: of the existing object. */
  readonly ApplyWorkload: ActionWorkloadObject & {
    readonly object: KubeObject;
    readonly generation: number;
    readonly uid: string | undefined;
  };
  readonly DeleteWorkload: ActionWorkloadObject & { readonly object: string; readonly uid: string };
  /**
   * Claim, policy and value in one transaction. New scopes have no id yet. `proof` and `formerHolders` adopt a claim.
   * `holder`: the uid of an object that is not in the world, or that of a namespace. If the object is gone, its policy
   * is of no generation (0); that of a namespace has the generation of the instance.
   */
  readonly PutScope: ActionClaim & {
    readonly policy: PolicyWrite['policy'];
    readonly generation: number;
    readonly isNew: boolean;
    readonly proof?: string | undefined;
    readonly formerHolders?: ReadonlyArray<string> | undefined;
    readonly value?: ScopeValue | undefined;
    readonly holder?: string | undefined;
  };
  readonly RetireScope: ActionClaim & { readonly scopeId: ScopeId; readonly observed: ObservedHolder };
  /** `overlap`: the time for which the values still work. Absent: they stop working now. */
  readonly EndValues: ActionClaim & {
    readonly scopeId: ScopeId;
    readonly hashes: ReadonlyArray<string>;
    readonly overlap: Millis | undefined;
    readonly observed?: ObservedHolder;
  };
  /**
   * `value`: the new one, that of another Secret of the VirtualKey, the one that the Secret has, or the one that the
   * status still has.
   */
  readonly PutSecret: {
    readonly instance: Path;
    readonly shape: SecretShape;
    readonly value: 'new' | 'previous' | 'same' | 'status';
    readonly isNew: boolean;
  };
  /** Marks the VirtualKey's Secret as that of a retained key. Its data stays as it is. */
  readonly RetainSecret: { readonly secret: string; readonly marks: SecretMarks };
  readonly DeleteSecret: { readonly secret: string; readonly uid: string };
  readonly CreateKey: {
    readonly key: string;
    readonly spec: OwnedKeySpec;
    readonly owner: OwnerReference;
    readonly requestedBy: string | undefined;
  };
  /** The VirtualKey that the User had before a restore gets its owner reference again. */
  readonly AdoptKey: { readonly key: string; readonly uid: string; readonly owner: OwnerReference };
  readonly UpdateKey: { readonly key: string; readonly spec: Readonly<Record<string, unknown>> };
  readonly DeleteKey: { readonly instance: Path; readonly key: string; readonly uid: string };
  readonly WriteStatus: { readonly patch: StatusPatch };
  /** An event with the same `once` is recorded once, however often it is planned. */
  readonly RecordEvent: {
    readonly type: Severity;
    readonly reason: Reason | OtherReason;
    readonly message: string;
    readonly once: string;
  };
}

type ActionWorkloadObject = { readonly objectKind: WorkloadObjectKind };

export type ActionName = keyof ActionDetails;
/** Only scopes are written for a `Namespace`. Its `namespace` is its name, too. */
type KindOf<Name extends ActionName> = Name extends 'PutScope' ? ActionKind : KindName;
export type ActionOf<Name extends ActionName> = {
  [N in Name]: ActionObject<KindOf<N>> & { readonly action: N } & ActionDetails[N];
}[Name];
export type Action = ActionOf<ActionName>;

/** The fields of a VirtualKey that its User decides. */
export type OwnedKeySpec = Partial<VirtualKeySpec> &
  Pick<VirtualKeySpec, 'keyAlias' | 'maxBudget' | 'budgetDuration' | 'connectionRef'>;

/**
 * Changed members; `null` for members that are removed. `keyValue` names what to write and never contains the value.
 */
export interface StatusPatch {
  readonly members: Readonly<Record<string, unknown>>;
  readonly keyValue?: 'full' | 'redacted';
}

/** How an action ended. */
export type Outcome =
  /** `object`: as the API server returned it. */
  | { readonly ended: 'done'; readonly object?: KubeObject }
  /** Nothing had to be changed. */
  | { readonly ended: 'unchanged' }
  /** The world was not as planned. */
  | { readonly ended: 'conflict' }
  | { readonly ended: 'failed'; readonly problem: Problem<Reason> }
  /** Not a failure: the object's namespace is being deleted, or a person must act first. */
  | { readonly ended: 'skipped'; readonly problem: Problem<Reason> };

export interface Result {
  readonly action: Action;
  readonly outcome: Outcome;
}

export const about = ({ kind, metadata: { namespace, name } }: Pick<OwnObject, 'kind' | 'metadata'>, why: string) => ({
  kind,
  namespace,
  name,
  why,
});

/** The action's object and claim, from a scope object. */
export function aboutClaim(scopeObject: ScopeObject, why: string): ActionObject & ActionClaim {
  const { kind: claimKind, alias } = aliasOf(scopeObject);
  return { ...about(scopeObject, why), instance: instancePathOf(scopeObject), claimKind, alias };
}

/** The severity is that of the reason, unless it is given. */
export const event = (
  object: Pick<OwnObject, 'kind' | 'metadata'>,
  { type, ...text }: Omit<ActionDetails['RecordEvent'], 'type'> & { readonly type?: Severity },
): Action => ({
  action: 'RecordEvent',
  ...about(object, `the event is ${text.reason}`),
  ...text,
  message: inOneLine(text.message),
  type: type ?? rowOf(text.reason)?.event ?? 'Warning',
});

/** Events have one line: a list `- a`, `- b` of a condition becomes `(1) a (2) b`. */
function inOneLine(message: string): string {
  const lines = message.split('\n');
  if (lines.length === 1) return message;
  return lines.map((line, index) => `(${index + 1}) ${line.replace(/^- /, '')}`).join(' ');
}

/** Whether an action only reports a state, so that no other action waits for it. */
export const isReport = ({ action }: Action): boolean => action === 'WriteStatus' || action === 'RecordEvent';

/**
 * Whether a finalizer is removed although something is not cleaned up, or a Secret is marked for that: deletion never
 * hangs.
 */
export const isForced = (action: Action): boolean =>
  action.action === 'RetainSecret' || (action.action === 'RemoveFinalizer' && action.notCleanedUp !== undefined);

/** Details that distinguish steps of the same kind for the same object. */
const IDENTIFYING: ReadonlyArray<string> = ['once', 'scopeId', 'snapshot', 'objectKind', 'generation'];

/** The identity of a step: the same for the same step of the same object, whatever its other details are. */
export function identify(action: Action): string {
  const details = Object.entries(action).flatMap(([name, value]) => (IDENTIFYING.includes(name) ? [value] : []));
  return [action.action, idOf(action.kind, action), ...details].join(' ');
}

/**
 * Removals of one kind on one instance that are not done. `message`: for the condition of the instance and for its
 * event.
 */
export interface DeletionGuard {
  readonly instance: Path;
  readonly action: 'RetireScope' | 'DeleteKey';
  readonly count: number;
  readonly total: number;
  readonly message: string;
}

export type Sign = '+' | '~' | '-';

/** The mark of an action in a dry run: something is created, changed or removed. The verb of most actions decides. */
export function signOf(action: Action): Sign {
  if (action.action === 'ApplyWorkload') return action.uid === undefined ? '+' : '~';
  if ('isNew' in action) return action.isNew ? '+' : '~';
  if (action.action === 'EndValues') return action.overlap === undefined ? '-' : '~';
  if (/^(Add|Create|Publish|Push|Record)/.test(action.action)) return '+';
  return /^(Remove|Close|Delete|Retire)/.test(action.action) ? '-' : '~';
}

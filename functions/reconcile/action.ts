// The actions of a run, as plain data: decided by plan, done by act, printed by a dry run.
import { type OtherReason, type Reason, rowOf, type Severity } from '#core/conditions/reasons.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { PolicyWrite, PreviousLedger } from '#core/ports/registry.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import type { OwnerReference } from '#crds/names/object-meta.ts';
import type { PartName } from './workload/object-parts.ts';
import { aliasOf, idOf, instancePathOf, type Member, type OwnObject, type Path, type Problem } from './world.ts';

/** The object that an action is about, and why it is done: a sentence that never holds a key. */
interface About {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

/** A claim of an instance, in whose database it is. */
interface OnClaim {
  readonly instance: Path;
  readonly scope: ClaimKind;
  readonly alias: string;
}

/** Labels, annotations and data of a key's Secret. */
export interface SecretShape {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Name to text as its author wrote it: a mark in it may stand for 2,048 characters, and thousands of Secrets are planned. */
  readonly data: Readonly<Record<string, string>>;
  /** The instance's base address, for the marks in `data`. */
  readonly url: string | undefined;
}

/** A value of a key to make live. */
export interface ScopeValue {
  /** Absent: a new one, which the Secret is to hold. */
  readonly hash?: string | undefined;
  readonly rotation?: string | undefined;
  /**
   * The Secret holds this value, which the claim does not know: where it lives by now, another run has published it.
   */
  readonly unlessLive?: string | undefined;
  /** This value is restored from the Secret, unless it was ended on purpose. */
  readonly unlessEnded?: string | undefined;
}

/** Details of each action, beside the object that it is about. */
interface Details {
  readonly AddFinalizer: object;
  /** `left`: what could not be cleaned, and is left behind. */
  readonly RemoveFinalizer: { readonly left?: string | undefined };
  /** `ledger`: of a closed instance, which it is to continue with. */
  readonly OpenInstance: { readonly ledger: PreviousLedger | undefined };
  readonly CloseInstance: object;
  /** Another instance of the same database, which is gone. */
  readonly CloseOrphan: { readonly uid: string };
  readonly PublishSnapshot: { readonly snapshot: string };
  /** Into the store that gateways outside the cluster read. */
  readonly PushSnapshot: { readonly snapshot: string };
  readonly DeleteSnapshot: { readonly snapshot: string; readonly uid: string };
  /** By server-side apply. `uid`: of the object that is there. */
  readonly ApplyWorkload: PartOf & {
    readonly object: KubeObject;
    readonly generation: number;
    readonly uid: string | undefined;
  };
  readonly DeleteWorkload: PartOf & { readonly object: string; readonly uid: string };
  /** Claim, policy and value in one transaction. Scopes that are new have no id yet. `proof` adopts a claim. */
  readonly PutScope: OnClaim & {
    readonly policy: PolicyWrite['policy'];
    readonly generation: number;
    readonly isNew: boolean;
    readonly proof?: string | undefined;
    readonly value?: ScopeValue | undefined;
  };
  readonly RetireScope: OnClaim & { readonly scopeId: ScopeId };
  /** `overlap`: so long they work on. Absent: they no longer work. */
  readonly RetireValues: OnClaim & {
    readonly scopeId: ScopeId;
    readonly hashes: ReadonlyArray<string>;
    readonly overlap: Millis | undefined;
  };
  /**
   * `value`: the new one, that of another Secret of the key, the one that it has, or the one that the status still has.
   */
  readonly PutSecret: {
    readonly instance: Path;
    readonly shape: SecretShape;
    readonly value: 'new' | 'previous' | 'same' | 'status';
    readonly isNew: boolean;
  };
  readonly DeleteSecret: { readonly secret: string; readonly uid: string };
  readonly CreateKey: {
    readonly key: string;
    readonly spec: OwnedKeySpec;
    readonly owner: OwnerReference;
    readonly requestedBy: string | undefined;
  };
  readonly UpdateKey: { readonly key: string; readonly spec: Readonly<Record<string, unknown>> };
  readonly DeleteKey: { readonly instance: Path; readonly key: string; readonly uid: string };
  readonly WriteStatus: { readonly patch: StatusPatch };
  /** With the same `once` an event is recorded once, however often it is planned. */
  readonly RecordEvent: {
    readonly type: Severity;
    readonly reason: Reason | OtherReason;
    readonly message: string;
    readonly once: string;
  };
}

type PartOf = { readonly part: PartName };

export type ActionName = keyof Details;
export type ActionOf<Name extends ActionName> = {
  [N in Name]: About & { readonly action: N } & Details[N];
}[Name];
export type Action = ActionOf<ActionName>;

/** The fields of a key that its User decides. */
export type OwnedKeySpec = Partial<VirtualKeySpec> &
  Pick<VirtualKeySpec, 'keyAlias' | 'maxBudget' | 'budgetDuration' | 'connectionRef'>;

/** Changed members, `null` for those that go. `keyValue` says what to write and never holds it. */
export interface StatusPatch {
  readonly members: Readonly<Record<string, unknown>>;
  readonly keyValue?: 'full' | 'redacted';
}

/** How an action ended. */
export type Outcome =
  /** `object`: as the API server answered it. */
  | { readonly ended: 'done'; readonly object?: KubeObject }
  /** Nothing had to change. */
  | { readonly ended: 'unchanged' }
  /** The world was not as planned. */
  | { readonly ended: 'conflict' }
  | { readonly ended: 'failed'; readonly problem: Problem<Reason> }
  /** No failure: its namespace is being deleted. */
  | { readonly ended: 'skipped'; readonly why: string };

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

/** The same of what a member claims. */
export function aboutClaim(member: Member, why: string): About & OnClaim {
  const { kind: scope, alias } = aliasOf(member);
  return { ...about(member, why), instance: instancePathOf(member), scope, alias };
}

/** Severity is that of the reason, unless it is given. */
export const event = (
  object: Pick<OwnObject, 'kind' | 'metadata'>,
  { type, ...text }: Omit<Details['RecordEvent'], 'type'> & { readonly type?: Severity },
): Action => ({
  action: 'RecordEvent',
  ...about(object, `people are told ${text.reason}`),
  ...text,
  type: type ?? rowOf(text.reason)?.event ?? 'Warning',
});

/** Tells how something is, and changes nothing that anything else waits for. */
export const isReport = ({ action }: Action): boolean => action === 'WriteStatus' || action === 'RecordEvent';

/** A finalizer that goes although something is left to clean: deletion never sticks. */
export const isForced = (action: Action): boolean => action.action === 'RemoveFinalizer' && action.left !== undefined;

/** Details that distinguish steps of the same kind about the same object. */
const DETAILS: ReadonlyArray<string> = ['once', 'scopeId', 'snapshot', 'part', 'generation'];

/** The same for the same step of the same object, whatever its other details. */
export function identify(action: Action): string {
  const details = Object.entries(action).flatMap(([name, value]) => (DETAILS.includes(name) ? [value] : []));
  return [action.action, idOf(action.kind, action), ...details].join(' ');
}

/**
 * Removals of one kind on one instance that are not done. `message`: for the condition of the instance, and for its
 * event.
 */
export interface DeletionGuard {
  readonly instance: Path;
  readonly action: 'RetireScope' | 'DeleteKey';
  readonly count: number;
  readonly of: number;
  readonly message: string;
}

export type Sign = '+' | '~' | '-';

/** How a dry run draws it: something comes, changes or goes. The verb of most actions says which. */
export function signOf(action: Action): Sign {
  if (action.action === 'ApplyWorkload') return action.uid === undefined ? '+' : '~';
  if ('isNew' in action) return action.isNew ? '+' : '~';
  if (action.action === 'RetireValues' && action.overlap !== undefined) return '~';
  if (/^(Add|Create|Publish|Push|Record)/.test(action.action)) return '+';
  return /^(Remove|Close|Delete|Retire)/.test(action.action) ? '-' : '~';
}

// The actions of a run, as plain data: decided by plan, done by act, printed by a dry run.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { Ledger, PolicyWrite } from '#core/ports/registry.ts';
import type { KindName } from '#crds/kinds.ts';
import type { OwnerReference } from '#crds/object-meta.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { PartName } from './workload/parts.ts';
import type { OwnObject, Path } from './world.ts';

/** The object that an action is about, and why it is done: a sentence that never holds a key. */
interface About {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

/** A claim of an instance, in whose database it is. */
interface OnClaim extends About {
  readonly instance: Path;
  readonly scope: ClaimKind;
  readonly alias: string;
}

/** Labels, annotations, owners and entries of a key's Secret. */
export interface SecretShape {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly owners: ReadonlyArray<OwnerReference>;
  /** Name to text, in which `${key}` stands for the value. */
  readonly entries: Readonly<Record<string, string>>;
}

/** A value of a key to make live. */
export interface ScopeValue {
  /** Absent: a new one, which the Secret is to hold. */
  readonly hash?: string;
  readonly asked?: string;
  /** The Secret holds this value, which the claim does not know: where it lives by now, another run has published it. */
  readonly unless?: string;
}

export type Action =
  | (About & { readonly action: 'AddFinalizer' })
  /** `left`: what could not be cleaned, and is left behind. */
  | (About & { readonly action: 'RemoveFinalizer'; readonly left?: string })
  /** `ledger`: of a closed instance, which it is to go on with. */
  | (About & { readonly action: 'OpenInstance'; readonly ledger?: Ledger })
  | (About & { readonly action: 'CloseInstance' })
  /** Another instance of the same database, which is gone. */
  | (About & { readonly action: 'CloseOrphan'; readonly uid: string })
  | (About & { readonly action: 'PublishSnapshot'; readonly snapshot: string })
  | (About & { readonly action: 'DeleteSnapshot'; readonly snapshot: string; readonly uid: string })
  /** By server-side apply. `uid`: of the object that is there. */
  | (About & {
      readonly action: 'ApplyWorkload';
      readonly part: PartName;
      readonly object: KubeObject;
      readonly generation: number;
      readonly uid?: string;
    })
  | (About & {
      readonly action: 'DeleteWorkload';
      readonly part: PartName;
      readonly object: string;
      readonly uid: string;
    })
  /** Claim, policy and value in one transaction. `proof` adopts a claim. */
  | (OnClaim & {
      readonly action: 'PutScope';
      /** Scopes that are new have no id yet. */
      readonly policy: PolicyWrite['policy'];
      readonly generation: number;
      readonly isNew: boolean;
      readonly proof?: string;
      readonly value?: ScopeValue;
    })
  | (OnClaim & { readonly action: 'RetireScope'; readonly scopeId: ScopeId })
  | (OnClaim & {
      readonly action: 'RetireValues';
      readonly scopeId: ScopeId;
      readonly hashes: ReadonlyArray<string>;
      /** So long they work on. Absent: they work no more. */
      readonly overlap?: Millis;
    })
  /** `value`: the new one, that of another Secret of the key, the one that it has, or the one that the status still has. */
  | (About & {
      readonly action: 'PutSecret';
      readonly instance: Path;
      readonly shape: SecretShape;
      readonly value: 'new' | 'previous' | 'same' | 'status';
      readonly isNew: boolean;
    })
  | (About & { readonly action: 'DeleteSecret'; readonly secret: string; readonly uid: string })
  | (About & {
      readonly action: 'CreateKey';
      readonly key: string;
      readonly spec: OwnedKeySpec;
      readonly owner: OwnerReference;
      readonly requestedBy?: string;
    })
  | (About & { readonly action: 'UpdateKey'; readonly key: string; readonly spec: Readonly<Record<string, unknown>> })
  | (About & {
      readonly action: 'DeleteKey';
      readonly instance: Path;
      readonly key: string;
      readonly uid: string;
    })
  | (About & { readonly action: 'WriteStatus'; readonly patch: StatusPatch })
  | (About & { readonly action: 'RecordEvent' } & EventText);

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** The same twice is one event. */
  readonly once: string;
}

/** What a User decides of its key. */
export type OwnedKeySpec = Partial<VirtualKeySpec> &
  Pick<VirtualKeySpec, 'keyAlias' | 'maxBudget' | 'budgetDuration' | 'connectionRef'>;

/** Changed members, `null` for those that go. `keyValue` says what to write and never holds it. */
export interface StatusPatch {
  readonly members: Readonly<Record<string, unknown>>;
  readonly keyValue?: 'full' | 'redacted';
}

export type ActionName = Action['action'];
export type ActionOf<Name extends ActionName> = Extract<Action, { readonly action: Name }>;

export const about = ({ kind, metadata: { namespace, name } }: Pick<OwnObject, 'kind' | 'metadata'>, why: string) => ({
  ...{ kind, namespace, name, why },
});

/** An event. With the same `once` it is recorded once, however often it is planned. */
export const event = (object: Pick<OwnObject, 'kind' | 'metadata'>, text: EventText): Action => ({
  ...{ action: 'RecordEvent', ...about(object, `people are told ${text.reason}`), ...text },
});

/** Tells how something is, and changes nothing that anything else waits for. */
export const isReport = ({ action }: Action): boolean => action === 'WriteStatus' || action === 'RecordEvent';

/** The same for the same step of the same object, whatever its details. */
export function identify(action: Action): string {
  return `${action.action} ${action.kind}/${action.namespace}/${action.name} ${detailOf(action)}`;
}

function detailOf(action: Action): string {
  switch (action.action) {
    case 'RecordEvent':
      return action.once;
    case 'RetireScope':
      return action.scopeId;
    case 'DeleteSnapshot':
      return action.snapshot;
    case 'ApplyWorkload':
      return `${action.part} ${action.generation}`;
    case 'DeleteWorkload':
      return action.part;
    default:
      return '';
  }
}

export type Sign = '+' | '~' | '-';

/** How a dry run draws it: something comes, changes or goes. */
export function signOf(action: Action): Sign {
  if (action.action === 'ApplyWorkload') return action.uid === undefined ? '+' : '~';
  if (action.action === 'PutScope' || action.action === 'PutSecret') return action.isNew ? '+' : '~';
  if (action.action === 'RetireValues') return action.overlap === undefined ? '-' : '~';
  return SIGNS[action.action];
}

export const SIGNS: Readonly<Record<ActionName, Sign>> = {
  AddFinalizer: '+',
  RemoveFinalizer: '-',
  OpenInstance: '~',
  CloseInstance: '-',
  CloseOrphan: '-',
  PublishSnapshot: '+',
  DeleteSnapshot: '-',
  ApplyWorkload: '~',
  DeleteWorkload: '-',
  PutScope: '~',
  RetireScope: '-',
  RetireValues: '-',
  PutSecret: '~',
  DeleteSecret: '-',
  CreateKey: '+',
  UpdateKey: '~',
  DeleteKey: '-',
  WriteStatus: '~',
  RecordEvent: '+',
};

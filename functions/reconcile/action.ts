// What can a run do? Plain data: decided by plan, done by act, foreseen by a dry run.
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Millis } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { PolicyWrite } from '#core/ports/registry.ts';
import type { KindName } from '#crds/kinds.ts';
import type { OwnerReference } from '#crds/object-meta.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { PartName } from './workload/parts.ts';

/** The object that an action is about, and why it is done: a sentence that never holds a key. */
interface About {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  readonly why: string;
}

interface OnInstance extends About {
  /** The instance whose database is written. */
  readonly instance: string;
}

/** Labels, annotations, owners and entries of a key's Secret. `key` stands for the value in each entry's text. */
export interface SecretShape {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly owners: ReadonlyArray<OwnerReference>;
  /** Name to text, in which `${key}` stands for the value. */
  readonly entries: Readonly<Record<string, string>>;
}

export type Action =
  | (About & { readonly action: 'AddFinalizer' })
  | (About & {
      readonly action: 'RemoveFinalizer';
      /** What could not be cleaned and is left behind. */ readonly letGo?: string;
    })
  | (OnInstance & { readonly action: 'OpenDatabase' })
  | (OnInstance & { readonly action: 'CloseInstance' })
  /** Another instance of the same database, which is gone. */
  | (OnInstance & { readonly action: 'CloseStray'; readonly uid: string })
  | (About & { readonly action: 'PublishSnapshot'; readonly snapshot: string })
  | (About & { readonly action: 'DeleteSnapshot'; readonly snapshot: string; readonly uid: string })
  /** By server-side apply; `uid` says which one is meant, absent: it is not there yet. */
  | (About & {
      readonly action: 'ApplyWorkload';
      readonly part: PartName;
      readonly object: KubeObject;
      readonly uid?: string;
    })
  | (About & {
      readonly action: 'DeleteWorkload';
      readonly part: PartName;
      readonly object: string;
      readonly uid: string;
    })
  | (OnInstance & {
      readonly action: 'ClaimAlias';
      readonly scope: ClaimKind;
      readonly alias: string;
      /** Hash of the value that proves an adoption. */
      readonly proof?: string;
    })
  | (OnInstance & { readonly action: 'RetireClaim'; readonly claim: string; readonly scopeId: ScopeId })
  | (OnInstance & {
      readonly action: 'WritePolicy';
      readonly claim: string;
      readonly write: PolicyWrite;
      /** The gateway has none of it yet. */
      readonly first?: true;
    })
  | (OnInstance & {
      readonly action: 'AddValue';
      readonly claim: string;
      readonly scopeId: ScopeId;
      readonly hash: string;
      /** What the annotation that asks for a rotation says: it is done with this value. */
      readonly asked?: string;
    })
  | (OnInstance & {
      readonly action: 'RetireValues';
      readonly claim: string;
      readonly scopeId: ScopeId;
      readonly hashes: ReadonlyArray<string>;
      /** So long they work on. Absent: they work no more. */
      readonly overlap?: Millis;
    })
  /** With a new value, or with the one that another Secret of the key has. */
  | (About & { readonly action: 'CreateSecret'; readonly shape: SecretShape; readonly value: 'new' | 'previous' })
  /** Repairs it. `value`: the one that it has, or the one that the status still has (then only while these values live). */
  | (OnInstance & {
      readonly action: 'UpdateSecret';
      readonly shape: SecretShape;
      readonly value: 'same' | 'status';
    })
  /** Another value, recorded and then written over the one that it has. */
  | (OnInstance & {
      readonly action: 'RotateSecret';
      readonly claim: string;
      readonly scopeId: ScopeId;
      readonly shape: SecretShape;
      readonly asked?: string;
    })
  | (OnInstance & {
      readonly action: 'DeleteSecret';
      readonly secret: string;
      readonly uid: string;
      /** Only if these are still the claim's live values: nobody minted meanwhile. */
      readonly unless?: { readonly claim: string; readonly live: ReadonlyArray<string> };
    })
  | (About & {
      readonly action: 'CreateKey';
      readonly spec: OwnedKeySpec;
      readonly key: string;
      readonly owner: OwnerReference;
      readonly requestedBy?: string;
    })
  | (About & { readonly action: 'UpdateKey'; readonly key: string; readonly spec: Readonly<Record<string, unknown>> })
  | (About & { readonly action: 'DeleteKey'; readonly key: string; readonly uid: string })
  | (About & { readonly action: 'WriteStatus'; readonly patch: StatusPatch })
  | (About & {
      readonly action: 'RecordEvent';
      readonly type: 'Normal' | 'Warning';
      readonly reason: string;
      readonly message: string;
      /** The same twice is one event. */
      readonly once: string;
    });

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

/** Says what is, and changes nothing that anything else waits for. */
export const isTold = ({ action }: Action): boolean => action === 'WriteStatus' || action === 'RecordEvent';

export type Sign = '+' | '~' | '-';

/** How a dry run draws it. */
export function signOf(action: Action): Sign {
  const isNew =
    (action.action === 'ApplyWorkload' && action.uid === undefined) ||
    (action.action === 'WritePolicy' && action.first === true);
  const isOver = action.action === 'RetireValues' && action.overlap !== undefined;
  return isNew ? '+' : isOver ? '~' : SIGNS[action.action];
}

/** Something comes, changes or goes; what may do both says so itself. */
export const SIGNS: Readonly<Record<ActionName, Sign>> = {
  AddFinalizer: '+',
  RemoveFinalizer: '-',
  OpenDatabase: '~',
  CloseInstance: '-',
  CloseStray: '-',
  PublishSnapshot: '+',
  DeleteSnapshot: '-',
  ApplyWorkload: '~',
  DeleteWorkload: '-',
  ClaimAlias: '+',
  RetireClaim: '-',
  WritePolicy: '~',
  AddValue: '+',
  RetireValues: '-',
  CreateSecret: '+',
  UpdateSecret: '~',
  RotateSecret: '~',
  DeleteSecret: '-',
  CreateKey: '+',
  UpdateKey: '~',
  DeleteKey: '-',
  WriteStatus: '~',
  RecordEvent: '+',
};

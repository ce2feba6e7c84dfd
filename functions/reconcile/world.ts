// The world of a run: what was observed of the cluster, the databases and the counter stores, and what the run has
// tried so far.

import type { OtherReason, Reason } from '#core/conditions/reasons.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { Claim, InstanceRow, InstanceState, ObservedHolder } from '#core/ports/registry.ts';
import type { StoreFile } from '#core/rules/connections.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { Team } from '#crds/kinds/team.ts';
import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { FINALIZER } from '#crds/names/group.ts';
import type { OwnerReference } from '#crds/names/object-meta.ts';
import type { Violation } from '#crds/validation/violation.ts';
import type { LiveWorkloadObject } from './workload/live-object.ts';
import type { RouteName, WorkloadObjectKind } from './workload/workload-objects.ts';

export type OwnObject = GatewayInstance | VirtualKey | User | Team;
/** An object with a scope and a claim of its own on an instance. */
export type ScopeObject = VirtualKey | User | Team;

/** The kinds of objects that actions are about. */
export type ActionKind = KindName | 'Namespace';

/** `namespace/name`. */
export type Path = string;
/** `kind/namespace/name`. */
export type ObjectId = string;

/** A cause that keeps an object from working. */
export interface Problem<Why extends Reason | OtherReason = Reason | OtherReason> {
  readonly reason: Why;
  readonly message: string;
}

/**
 * The result of a check of something that the instance needs. `message` if it works: what was found, such as an
 * address.
 */
export type CheckResult = { readonly ok: true; readonly message: string } | ({ readonly ok: false } & Problem);

/**
 * Plain data of a run, or of a part of it, which `plan` reads. An object that is not in the world was not listed, and
 * nothing is planned for it.
 */
export interface World {
  /** Instances as the API server has them. */
  readonly listed: ReadonlyMap<Path, GatewayInstance>;
  /** Instances that were observed. */
  readonly instances: ReadonlyMap<Path, InstanceView>;
  readonly keys: ReadonlyMap<Path, KeyView>;
  readonly users: ReadonlyMap<Path, User>;
  readonly teams: ReadonlyMap<Path, Team>;
  /**
   * Users, Teams and VirtualKeys of other instances that scope objects of this part refer to. They are planned for in
   * another part of the run.
   */
  readonly referred: Pick<World, 'keys' | 'users' | 'teams'>;
  /** Objects whose spec cannot be read: an older CRD accepted them. */
  readonly malformed: ReadonlyMap<ObjectId, MalformedObject>;
  /** Violations of rules about an object's own spec. */
  readonly violations: ReadonlyMap<ObjectId, ReadonlyArray<Violation>>;
  /** Instances that could not be observed: nothing is planned for them and their scope objects. */
  readonly unobserved: ReadonlyMap<Path, string>;
  /**
   * Uids of existing scope objects that are not in the world, because the objects of their namespace are too large
   * together.
   */
  readonly notLoaded: ReadonlySet<string>;
  /**
   * Uids of existing VirtualKeys that must not work and that are not planned for: malformed ones, and of those
   * that are not loaded the ones in deletion without the operator's finalizer.
   */
  readonly disabled: ReadonlySet<string>;
  /**
   * Generations, by uid, of scope objects that are blocked themselves, and that are not planned for otherwise in this
   * run.
   */
  readonly blocked: ReadonlyMap<string, number>;
  /**
   * VirtualKeys, Users and Teams that are left to the next run. Their statuses too: a status shows what is in force.
   */
  readonly deferred: ReadonlySet<ObjectId>;
  /** Labels of the namespaces that a selector reads. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly platform: PlatformView;
  /** Objects with a failed action in this run: only their status is still written. */
  readonly failures: ReadonlyMap<ObjectId, Problem<Reason>>;
  /** Hashes of values that were to be restored and had been ended on purpose: other values replace them. */
  readonly endedValues: ReadonlySet<string>;
  /** The number of attempts of each action in this run, by `identify`. */
  readonly attempts: ReadonlyMap<string, number>;
  /** The number of plans that this run may still make, including this one. The last is for statuses. */
  readonly roundsLeft: number;
  /** Whether the time for steps is over. */
  readonly isLate: boolean;
}

type Mutable<T> = T extends ReadonlyMap<infer K, infer V> ? Map<K, V> : T extends ReadonlySet<infer V> ? Set<V> : T;
type Builder<T> = { -readonly [Name in keyof T]: Mutable<T[Name]> };
/** The world while it is being observed. */
export type WorldBuilder = Builder<Omit<World, 'referred'>> & { readonly referred: Builder<World['referred']> };

/** The maximum number of plans of one run. A run that needs more is a bug, and must not continue for ever. */
const MAX_ROUNDS = 8;

/** A world without objects. `shared`: what the worlds of all parts have in common. */
export const createWorld = (platform: PlatformView, shared: Partial<WorldBuilder> = {}): WorldBuilder => ({
  listed: new Map(),
  instances: new Map(),
  keys: new Map(),
  users: new Map(),
  teams: new Map(),
  referred: { keys: new Map(), users: new Map(), teams: new Map() },
  malformed: new Map(),
  violations: new Map(),
  unobserved: new Map(),
  notLoaded: new Set(),
  disabled: new Set(),
  blocked: new Map(),
  deferred: new Set(),
  namespaces: new Map(),
  failures: new Map(),
  endedValues: new Set(),
  attempts: new Map(),
  roundsLeft: MAX_ROUNDS,
  isLate: false,
  platform,
  ...shared,
});

export interface PlatformView {
  readonly gatewayImage: string;
  readonly gatewayPullSecrets: ReadonlyArray<string>;
  readonly secretPrefixes: ReadonlyArray<string>;
  /** The version of this operator. */
  readonly version: string;
  readonly manyProcesses: boolean;
  /** Whether the cluster serves Knative. A text: why that could not be determined. */
  readonly knative: boolean | string;
}

export interface InstanceView {
  readonly object: GatewayInstance;
  /** Whether every VirtualKey, User and Team of the instance is in the world. */
  readonly isComplete: boolean;
  readonly database: DatabaseView;
  /** The database's clock when the database was read: ages and ends of key values are counted by it. */
  readonly databaseNow: Millis;
  readonly adopted?: InstanceState['predecessor'];
  /** Deleted instances that the database still has as open. Only resyncs search for them. */
  readonly deletedInstances: ReadonlyArray<InstanceRow>;
  readonly store: CheckResult;
  /** Absent while the Secret does not contain it. */
  readonly storeType?: StoreConnection['type'];
  /** The files that the gateway needs of the counter store's Secret. */
  readonly storeFiles?: ReadonlyArray<StoreFile>;
  /**
   * The problem of the database's Secret, else of the counter store's, else of the ConfigMap with authorities: Pods
   * that start now could not read it.
   */
  readonly fileProblem?: Problem;
  /** Hashes of the addresses in both Secrets, and of the authorities in the ConfigMap if there is one. */
  readonly addressHash: string;
  /** Hashes of the addresses and logins in both Secrets. */
  readonly loginHash: string;
  /**
   * By `identifier`: what keeps the model entry from serving. `unread`: the run has not read their Secrets, and plans
   * nothing for the instance itself.
   */
  readonly entryProblems: ReadonlyMap<string, Problem> | 'unread';
  readonly snapshot: SnapshotView;
  /** The objects that run the instance's gateway and lead to it, as they are in the cluster. */
  readonly workloadObjects: ReadonlyMap<WorkloadObjectKind, LiveWorkloadObject>;
  /** Objects that the reconciler has no right to read. */
  readonly workloadProblem?: Problem;
  /** Why an HTTPRoute or Ingress could not be read. */
  readonly routeProblems: ReadonlyMap<RouteName, Problem>;
  /** The address at which the platform itself serves the instance. */
  readonly servedAt: string | undefined;
  /** Whether any claim of an alias belongs to the instance. */
  readonly hasClaims: boolean;
  /** Claims of the scope objects in this world; all claims if the world is complete. By `claimKey`. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** Spend by `sumKey`. Absent: nothing was spent. */
  readonly sums: ReadonlyMap<string, Nano>;
  /** Claims whose holder was read by name and no longer exists, or claims something else. */
  readonly orphanedClaims: ReadonlyMap<ScopeId, OrphanedClaim>;
  /** Claims whose holder was not read yet, because there are too many: their number, by the holder's namespace. */
  readonly unsearchedClaims: ReadonlyMap<string, number>;
}

export interface OrphanedClaim {
  /** The holder that no longer exists. */
  readonly observed: ObservedHolder;
  /** The Secret by which the claim must be retained, and whether it must be blocked. Absent: there is none. */
  readonly retention?: { readonly secret: string; readonly isBlocked: boolean };
}

/** The claim of a scope object that has its alias, on an instance that can be used. */
export interface OwnClaim {
  readonly instance: InstanceView;
  readonly claim: Claim;
}

export type DatabaseView =
  /**
   * `isKnown`: the instance's rows could be read. `isRecorded`: there is a row for the instance; without it the rows of
   * its scope objects may be in another database. `isOpen`: the database has our schema, and that row is not closed.
   */
  | {
      readonly ok: true;
      readonly message: string;
      readonly isKnown: boolean;
      readonly isRecorded: boolean;
      readonly isOpen: boolean;
    }
  | ({ readonly ok: false } & Problem);

export interface SnapshotView {
  readonly hash: string;
  readonly name: string;
  readonly text: string;
  readonly bytes: number;
  /** A ConfigMap of the operator with this name exists. */
  readonly isPublished: boolean;
  /** Gateways outside the cluster can read it too. */
  readonly isPushed: boolean;
  /** Earlier snapshots of this instance, newest first. */
  readonly older: ReadonlyArray<{ readonly name: string; readonly uid: string }>;
}

export interface KeyView {
  readonly object: VirtualKey;
  /** The Secret with the desired name (`secretNameOf`). */
  readonly secret: SecretView;
  /** The Secret with the name in `status.keySecretRef`, if that is another. */
  readonly previous?: SecretView;
  /** Hash of `status.keyValue`: shows whether status still has the correct value of an edited Secret. */
  readonly statusHash?: string;
}

export type SecretView =
  /** Not read in this run: published, unchanged, and not in this run's share. */
  | { readonly state: 'unread' }
  | { readonly state: 'absent' }
  /** In deletion, kept by a finalizer of another program: it is no proof of a value, and cannot be created yet. */
  | { readonly state: 'deleting' }
  | PresentSecret;

export const unreadKey = (object: VirtualKey): KeyView => ({ object, secret: UNREAD });
const UNREAD: SecretView = { state: 'unread' };

/** The parts of a Secret that are compared with its shape: the owner of the namespace may fill a Secret with 1 MB. */
export interface PresentSecret {
  readonly state: 'present';
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Owner references to VirtualKeys. */
  readonly owners: ReadonlyArray<OwnerReference>;
  /** The Secret's key `key`, decoded. A Map, so that JSON of the world never contains a key value. */
  readonly data: ReadonlyMap<string, string>;
  /** The fingerprint of the data (`fingerprintOf`); empty for a Secret that is not the operator's. */
  readonly fingerprint: string;
  /** Hash of the Secret's key `key`. */
  readonly hash?: string;
}

export const presentSecret = (view: SecretView | undefined): PresentSecret | undefined =>
  view?.state === 'present' ? view : undefined;

export interface MalformedObject {
  readonly kind: KindName;
  readonly metadata: OwnObject['metadata'];
  readonly status: OwnObject['status'];
  readonly violations: ReadonlyArray<Violation>;
}

type NamespacedName = { readonly namespace: string; readonly name: string };

export const pathOf = ({ namespace, name }: NamespacedName): Path => `${namespace}/${name}`;
export const idOf = (kind: string, { namespace, name }: NamespacedName): ObjectId => `${kind}/${namespace}/${name}`;
export const instancePathOf = (scopeObject: ScopeObject): Path => pathOf(scopeObject.spec.connectionRef.instanceRef);

export const isDeleted = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.deletionTimestamp !== undefined;
export const hasFinalizer = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.finalizers?.includes(FINALIZER) === true;
/** Whether the object counts as gone: a finalizer of another program may keep it for any time. */
export const isAbandoned = (object: Pick<OwnObject, 'metadata'>): boolean => isDeleted(object) && !hasFinalizer(object);

/** Aliases of VirtualKeys have no prefix, because there are very many. No alias contains a control character. */
export const claimKey = (kind: ClaimKind, alias: string): string => (kind === 'key' ? alias : `${kind}\n${alias}`);
export const sumKey = (scopeId: ScopeId, { start, end }: Window): string => `${scopeId} ${start} ${end}`;

/** The kind of claim that each kind of scope object makes. */
export const CLAIM_OF = { VirtualKey: 'key', User: 'user', Team: 'team' } as const;
export const KIND_OF = { key: 'VirtualKey', user: 'User', team: 'Team' } as const;

/** The claim that a scope object makes on its instance. */
export function aliasOf(scopeObject: ScopeObject): {
  readonly kind: ClaimKind;
  readonly alias: string;
  readonly key: string;
} {
  const kind = CLAIM_OF[scopeObject.kind];
  const { kind: of, spec } = scopeObject;
  const alias = of === 'VirtualKey' ? spec.keyAlias : of === 'User' ? spec.userEmail : spec.teamAlias;
  return { kind, alias, key: claimKey(kind, alias) };
}

/** Whether the object is a VirtualKey, or this run may create its VirtualKey. */
export const mayHaveKeys = (scopeObject: ScopeObject): boolean =>
  scopeObject.kind === 'VirtualKey' || (scopeObject.kind === 'User' && scopeObject.spec.autoCreateKey);

/** An object that is in the world and not malformed. */
export function objectIn(world: World, kind: ActionKind, path: Path): OwnObject | undefined {
  if (kind === 'GatewayInstance') return world.instances.get(path)?.object;
  if (kind === 'VirtualKey') return world.keys.get(path)?.object;
  if (kind === 'User') return world.users.get(path);
  return kind === 'Team' ? world.teams.get(path) : undefined;
}

/** The User or Team that a scope object refers to. */
export const userAt = ({ users, referred }: World, path: Path) => users.get(path) ?? referred.users.get(path);
export const teamAt = ({ teams, referred }: World, path: Path) => teams.get(path) ?? referred.teams.get(path);

export const keysIn = ({ keys }: Pick<World, 'keys'>): VirtualKey[] => [...keys.values()].map(({ object }) => object);

export function scopeObjectsOf(world: Pick<World, 'keys' | 'users' | 'teams'>): ReadonlyArray<ScopeObject> {
  return [...world.teams.values(), ...world.users.values(), ...keysIn(world)];
}

export const hashesOf = ({ values }: Pick<Claim, 'values'>): ReadonlyArray<string> => values.map(({ hash }) => hash);

/**
 * The name of the Secret (in the namespace of the claim's holder) that keeps the claim although its VirtualKey is gone
 * (`deletionPolicy: Retain`).
 */
export const retainedSecret = ({ policy }: Claim): string | undefined =>
  policy !== undefined && 'retained' in policy ? policy.retained : undefined;

/** The holder of a claim as this run has read it. */
export const observedHolder = (claim: Claim): ObservedHolder => ({
  uid: claim.holder.uid,
  retained: retainedSecret(claim),
});

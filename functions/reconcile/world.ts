// The world of a run: what was observed of the cluster, the databases and the stores, and what the run has tried so
// far.

import type { OtherReason, Reason } from '#core/conditions/reasons.ts';
import type { StoreConnection } from '#core/ports/backends.ts';
import type { Millis, Nano, Window } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { Claim, InstanceRow, InstanceState } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/kinds/gateway-instance.ts';
import type { KindName } from '#crds/kinds/kinds.ts';
import type { Team } from '#crds/kinds/team.ts';
import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { FINALIZER } from '#crds/names/group.ts';
import type { OwnerReference } from '#crds/names/object-meta.ts';
import type { Violation } from '#crds/validation/violation.ts';
import type { LivePart } from './workload/live-part.ts';
import type { PartName } from './workload/object-parts.ts';

export type OwnObject = GatewayInstance | VirtualKey | User | Team;
export type Member = VirtualKey | User | Team;

/** `namespace/name`. */
export type Path = string;
/** `kind/namespace/name`. */
export type ObjectId = string;

/** A cause why something does not work. */
export interface Problem<Why extends Reason | OtherReason = Reason | OtherReason> {
  readonly reason: Why;
  readonly message: string;
}

/** `message` of what works: where it was reached. */
export type Reachability = { readonly ok: true; readonly message: string } | ({ readonly ok: false } & Problem);

/**
 * Plain data of a run, or of a part of it: `plan` reads it. An object that is not in it was not listed, and is not
 * planned for.
 */
export interface World {
  /** Instances as the API server has them. */
  readonly listed: ReadonlyMap<Path, GatewayInstance>;
  /** Those that were looked at. */
  readonly instances: ReadonlyMap<Path, InstanceView>;
  readonly keys: ReadonlyMap<Path, KeyView>;
  readonly users: ReadonlyMap<Path, User>;
  readonly teams: ReadonlyMap<Path, Team>;
  /** Objects of other instances that members here name: they are in another part of the run and not planned for. */
  readonly referred: Pick<World, 'keys' | 'users' | 'teams'>;
  /** Objects whose spec cannot be read: an older CRD let them in. */
  readonly malformed: ReadonlyMap<ObjectId, MalformedObject>;
  /** Rules about its own spec that an object breaks. */
  readonly violations: ReadonlyMap<ObjectId, ReadonlyArray<Violation>>;
  /** Instances that could not be looked at: neither they nor their members are planned for. */
  readonly unobserved: ReadonlyMap<Path, string>;
  /** Uids of members that are there and not in the world: those of their namespace are too large together. */
  readonly deferred: ReadonlySet<string>;
  /** Keys, Users and Teams whose steps are left to the next run, and their statuses too: those show what is in force. */
  readonly postponed: ReadonlySet<ObjectId>;
  /** Labels of the namespaces that a selector asks about. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
  readonly platform: PlatformView;
  /** Objects of which an action failed in this run: nothing more is tried for them but their status. */
  readonly failures: ReadonlyMap<ObjectId, Problem<Reason>>;
  /** Hashes of values that were to be restored and had been ended: others take their place. */
  readonly ended: ReadonlySet<string>;
  /** How often each action was tried in this run, by `identify`. */
  readonly attempts: ReadonlyMap<string, number>;
  /** Plans left in this run, this one included. The last is for statuses. */
  readonly roundsLeft: number;
  /** The time for steps is over. */
  readonly isLate: boolean;
}

type Mutable<T> = T extends ReadonlyMap<infer K, infer V> ? Map<K, V> : T extends ReadonlySet<infer V> ? Set<V> : T;
type Builder<T> = { -readonly [Name in keyof T]: Mutable<T[Name]> };
/** The world while it is observed. */
export type WorldBuilder = Builder<Omit<World, 'referred'>> & { readonly referred: Builder<World['referred']> };

/** Plans of one run, this one included; a run that never ends is a bug that must not continue for ever. */
const MAX_ROUNDS = 8;

/** A world without objects. `shared`: what it has in common with others. */
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
  deferred: new Set(),
  postponed: new Set(),
  namespaces: new Map(),
  failures: new Map(),
  ended: new Set(),
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
  /** The operator's own version. */
  readonly version: string;
  readonly manyProcesses: boolean;
  /** Whether the cluster serves Knative; a text says why that could not be found out. */
  readonly knative: boolean | string;
}

export interface InstanceView {
  readonly object: GatewayInstance;
  /** Whether every key, user and team of the instance is in the world. */
  readonly isComplete: boolean;
  readonly database: DatabaseView;
  /** The database's clock when it was looked at: ages and ends of key values are counted by it. */
  readonly time: Millis;
  readonly adopted?: InstanceState['predecessor'];
  /** Instances that are gone and still count as open in its database. Resyncs look for them. */
  readonly orphans: ReadonlyArray<InstanceRow>;
  readonly store: Reachability;
  /** Absent while its Secret does not say. */
  readonly storeType?: StoreConnection['type'];
  /** The problem of the database's Secret, else of the store's: Pods that start now could not read it. */
  readonly secretProblem?: Problem;
  /** Versions of these Secrets. */
  readonly secretVersions: string;
  /** Per `identifier` what keeps the entry from serving. */
  readonly entryProblems: ReadonlyMap<string, Problem>;
  readonly snapshot: SnapshotView;
  /** The objects that run its gateway, as they are. */
  readonly parts: ReadonlyMap<PartName, LivePart>;
  /** Objects that may not be read. */
  readonly partsProblem?: Problem;
  /** Where the platform itself serves the instance. */
  readonly servedAt: string | undefined;
  /** Whether anything claims an alias of it. */
  readonly hasClaims: boolean;
  /** Those of its members here; all where it is complete. By `claimKey`. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** By `sumKey`. Absent: nothing was spent. */
  readonly sums: ReadonlyMap<string, Nano>;
  /** Claims whose holder, asked for by name, is not there any more, or claims something else. */
  readonly orphanedClaims: ReadonlySet<ScopeId>;
  /** Claims whose holder was not asked for yet, for there are too many of them: how many, by the holder's namespace. */
  readonly unsearchedClaims: ReadonlyMap<string, number>;
}

/** The claim of a member that has it, on an instance that can be used. */
export interface OwnClaim {
  readonly instance: InstanceView;
  readonly claim: Claim;
}

export type DatabaseView =
  /**
   * `isKnown`: its rows of the instance could be read. `isOpen`: it has our schema, and the instance is recorded there.
   */
  | { readonly ok: true; readonly message: string; readonly isKnown: boolean; readonly isOpen: boolean }
  | ({ readonly ok: false } & Problem);

export interface SnapshotView {
  readonly hash: string;
  readonly name: string;
  readonly text: string;
  readonly bytes: number;
  /** One of our ConfigMaps with this name is there. */
  readonly isPublished: boolean;
  /** Gateways outside the cluster find it too. */
  readonly isPushed: boolean;
  /** Earlier ones of this instance, newest first. */
  readonly older: ReadonlyArray<{ readonly name: string; readonly uid: string }>;
}

export interface KeyView {
  readonly object: VirtualKey;
  /** The Secret of the name that it should have (`secretNameOf`). */
  readonly secret: SecretView;
  /** The Secret of the name in `status.keySecretRef`, where that is another. */
  readonly previous?: SecretView;
  /** Hash of `status.keyValue`: whether status still has the true value of an edited Secret. */
  readonly statusHash?: string;
}

export type SecretView =
  /** Not looked at: published, unchanged, and not in this run's share. */
  { readonly state: 'unread' } | { readonly state: 'absent' } | PresentSecret;

export const unreadKey = (object: VirtualKey): KeyView => ({ object, secret: UNREAD });
const UNREAD: SecretView = { state: 'unread' };

/** A Secret as far as it is compared with what it should be: whoever owns its namespace may fill it with 1 MB. */
export interface PresentSecret {
  readonly state: 'present';
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Owners that are VirtualKeys. */
  readonly owners: ReadonlyArray<OwnerReference>;
  /** Of its data the entry `key`, decoded. A Map, so that no JSON ever holds a key. */
  readonly data: ReadonlyMap<string, string>;
  /** The same for the same data (`fingerprintOf`). */
  readonly fingerprint: string;
  /** Hash of the entry `key`. */
  readonly hash?: string;
}

export const present = (view: SecretView | undefined): PresentSecret | undefined =>
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
export const instancePathOf = (member: Member): Path => pathOf(member.spec.connectionRef.instanceRef);

export const isDeleted = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.deletionTimestamp !== undefined;
export const hasFinalizer = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.finalizers?.includes(FINALIZER) === true;

/** A key's alias as it stands, for there are so many of them; no alias has a control character. */
export const claimKey = (kind: ClaimKind, alias: string): string => (kind === 'key' ? alias : `${kind}\n${alias}`);
export const sumKey = (scopeId: ScopeId, { start, end }: Window): string => `${scopeId} ${start} ${end}`;

/** The kind of claim of each kind of member. */
export const CLAIM_OF = { VirtualKey: 'key', User: 'user', Team: 'team' } as const;
export const KIND_OF = { key: 'VirtualKey', user: 'User', team: 'Team' } as const;

/** The claim that a member makes on its instance. */
export function aliasOf(member: Member): { readonly kind: ClaimKind; readonly alias: string; readonly key: string } {
  const kind = CLAIM_OF[member.kind];
  const { kind: of, spec } = member;
  const alias = of === 'VirtualKey' ? spec.keyAlias : of === 'User' ? spec.userEmail : spec.teamAlias;
  return { kind, alias, key: claimKey(kind, alias) };
}

/** An object that is in the world and not malformed. */
export function objectIn(world: World, kind: KindName, path: Path): OwnObject | undefined {
  if (kind === 'GatewayInstance') return world.instances.get(path)?.object;
  if (kind === 'VirtualKey') return world.keys.get(path)?.object;
  return kind === 'User' ? world.users.get(path) : world.teams.get(path);
}

/** The user or team that a member names. */
export const userAt = ({ users, referred }: World, path: Path) => users.get(path) ?? referred.users.get(path);
export const teamAt = ({ teams, referred }: World, path: Path) => teams.get(path) ?? referred.teams.get(path);

export const keysIn = ({ keys }: Pick<World, 'keys'>): VirtualKey[] => [...keys.values()].map(({ object }) => object);

export function membersOf(world: Pick<World, 'keys' | 'users' | 'teams'>): ReadonlyArray<Member> {
  return [...world.teams.values(), ...world.users.values(), ...keysIn(world)];
}

/** Hashes of all values of a claim. */
export const hashesOf = ({ values }: Pick<Claim, 'values'>): ReadonlyArray<string> => values.map(({ hash }) => hash);

/**
 * Name of the Secret, in the namespace of the claim's holder, that keeps a claim alive without its object
 * (`deletionPolicy: Retain`).
 */
export const retainedSecret = ({ policy }: Claim): string | undefined =>
  policy !== undefined && 'retained' in policy ? policy.retained : undefined;

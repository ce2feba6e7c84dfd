// What does one run know? Everything that was observed, and what the run's own actions have changed since.
import type { Nano } from '#core/money.ts';
import type { Millis, Window } from '#core/ports/money.ts';
import type { ClaimKind, ScopeId } from '#core/ports/policy.ts';
import type { Claim, Holder, InstanceRow, InstanceState } from '#core/ports/registry.ts';
import type { GatewayInstance } from '#crds/gateway-instance.ts';
import type { KindName } from '#crds/kinds.ts';
import type { OwnerReference } from '#crds/object-meta.ts';
import type { Team } from '#crds/team.ts';
import type { User } from '#crds/user.ts';
import type { Violation } from '#crds/violation.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Problem, Reached } from './problem.ts';
import type { WorkloadView } from './workload/view.ts';

export type OwnObject = GatewayInstance | VirtualKey | User | Team;
export type Member = VirtualKey | User | Team;

/** `namespace/name`. */
export type Path = string;
/** `kind/namespace/name`. */
export type ObjectId = string;

/** Plan reads it, only `learn` writes it. Whatever is in it is planned for: what it does not hold was not looked at. */
export interface World {
  readonly instances: ReadonlyMap<Path, InstanceView>;
  readonly keys: ReadonlyMap<Path, KeyView>;
  readonly users: ReadonlyMap<Path, User>;
  readonly teams: ReadonlyMap<Path, Team>;
  /** Objects whose spec is none: an older CRD let them in. */
  readonly malformed: ReadonlyMap<ObjectId, Malformed>;
  /** What breaks rules about its own spec; what is not malformed works as far as it goes. */
  readonly mistakes: ReadonlyMap<ObjectId, ReadonlyArray<Violation>>;
  /** Instances that could not be looked at: neither they nor their members are planned for. */
  readonly unobserved: ReadonlyMap<Path, string>;
  /** Labels of the namespaces that a selector asks about. */
  readonly namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Objects of which an action failed in this run, and how: nothing more is tried for them but their status. */
  readonly failures: ReadonlyMap<ObjectId, string>;
}

export interface InstanceView {
  readonly object: GatewayInstance;
  /** Whether every key, user and team of the instance is in the world. */
  readonly complete: boolean;
  readonly database: DatabaseView;
  /** What the database's clock said when it was looked at: ages and ends of key values are counted by it. */
  readonly time: Millis;
  /** Whose ledger it went on with. */
  readonly adopted?: InstanceState['adopted'];
  /** Instances that are gone and still count as open in its database. Looked for by sweeps only. */
  readonly strays: ReadonlyArray<InstanceRow>;
  readonly store: Reached;
  /** Per `identifier` what keeps the entry from serving; absent: it can serve. */
  readonly entryProblems: ReadonlyMap<string, Problem>;
  readonly snapshot: SnapshotView;
  readonly workload: WorkloadView;
  /** Where the platform itself serves the instance. */
  readonly servedAt: string | undefined;
  /** By `claimKey`. */
  readonly claims: ReadonlyMap<string, Claim>;
  /** Aliases that somebody else won while this run asked for them. */
  readonly taken: ReadonlyMap<string, Holder>;
  /** By `sumKey`. Absent: nothing was spent. */
  readonly sums: ReadonlyMap<string, Nano>;
  /** Claims whose holder, asked for by name, is not there any more, or claims something else. */
  readonly gone: ReadonlySet<ScopeId>;
}

/** `opened`: this process has migrated it and recorded the instance there. */
export type DatabaseView =
  /** `unread`: it answers, but not in our schema yet, so what it holds of the instance is not known. */
  | { readonly ok: true; readonly message: string; readonly opened: boolean; readonly unread?: true }
  | ({ readonly ok: false } & Problem);

/** The condition of an instance whose old snapshots could not be deleted. */
export const SNAPSHOTS_LEFT = 'SnapshotsLeft';

export interface SnapshotView {
  readonly hash: string;
  readonly name: string;
  readonly text: string;
  readonly bytes: number;
  /** A ConfigMap of ours with this name is there. */
  readonly published: boolean;
  /** Earlier ones of this instance, newest first; read only when another snapshot is due. */
  readonly older: ReadonlyArray<{ readonly name: string; readonly uid: string }>;
}

export interface KeyView {
  readonly object: VirtualKey;
  /** What its Secret should be called. */
  readonly secretName: string;
  /** Under that name. */
  readonly secret: SecretView;
  /** Under the name that `status.keySecretRef` says, where that is another. */
  readonly previous?: SecretView;
  /** Hash of `status.keyValue`: tells whether status still has the true value of an edited Secret. */
  readonly statusHash?: string;
  /** Hash of a value that another live scope has: it cannot become ours. */
  readonly refusedHash?: string;
  /** Too many changed at once: its turn comes with one of the next runs. */
  readonly later?: true;
}

export type SecretView =
  /** Not looked at: published, unchanged, and not in this minute's share. */
  { readonly state: 'unread' } | { readonly state: 'absent' } | PresentSecret;

export interface PresentSecret {
  readonly state: 'present';
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly owners: ReadonlyArray<OwnerReference>;
  /** Decoded. A Map, so that no JSON ever holds a key. */
  readonly data: ReadonlyMap<string, string>;
  /** Hash of the entry `key`. */
  readonly hash?: string;
  /** Written by this run with a new value. */
  readonly minted?: boolean;
}

export interface Malformed {
  readonly kind: KindName;
  readonly metadata: OwnObject['metadata'];
  readonly status: OwnObject['status'];
  readonly mistakes: ReadonlyArray<Violation>;
}

/** The same world for the one who learns. */
export interface Draft extends World {
  readonly instances: Map<Path, InstanceDraft>;
  readonly keys: Map<Path, KeyView>;
  readonly users: Map<Path, User>;
  readonly teams: Map<Path, Team>;
  readonly malformed: Map<ObjectId, Malformed>;
  readonly mistakes: Map<ObjectId, ReadonlyArray<Violation>>;
  readonly failures: Map<ObjectId, string>;
}

export interface InstanceDraft extends InstanceView {
  readonly claims: Map<string, Claim>;
  readonly taken: Map<string, Holder>;
  readonly sums: Map<string, Nano>;
}

export const pathOf = (at: { readonly namespace: string; readonly name: string }): Path => `${at.namespace}/${at.name}`;

export const idOf = (kind: string, at: { readonly namespace: string; readonly name: string }): ObjectId =>
  `${kind}/${at.namespace}/${at.name}`;

/** A key's alias as it stands, for there are so many of them; no alias has a control character. */
export const claimKey = (kind: ClaimKind, alias: string): string => (kind === 'key' ? alias : `${kind}\n${alias}`);

export const sumKey = (scopeId: ScopeId, { start, end }: Window): string => `${scopeId} ${start} ${end}`;

export const instancePathOf = (member: Member): Path => pathOf(member.spec.connectionRef.instanceRef);

/** An object that is in the world and not malformed. */
export function objectIn(world: World, kind: KindName, path: Path): OwnObject | undefined {
  switch (kind) {
    case 'GatewayInstance':
      return world.instances.get(path)?.object;
    case 'VirtualKey':
      return world.keys.get(path)?.object;
    case 'User':
      return world.users.get(path);
    case 'Team':
      return world.teams.get(path);
  }
}

/** What a kind claims, and which kind claims it. */
export const CLAIM_OF = {
  VirtualKey: 'key',
  User: 'user',
  Team: 'team',
} as const satisfies Record<Member['kind'], ClaimKind>;
export const KIND_OF = {
  key: 'VirtualKey',
  user: 'User',
  team: 'Team',
} as const satisfies Record<ClaimKind, Member['kind']>;

/** What a member claims on its instance. */
export function aliasOf(member: Member): { readonly kind: ClaimKind; readonly alias: string; readonly key: string } {
  const kind = CLAIM_OF[member.kind];
  const alias =
    member.kind === 'VirtualKey'
      ? member.spec.keyAlias
      : member.kind === 'User'
        ? member.spec.userEmail
        : member.spec.teamAlias;
  return { kind, alias, key: claimKey(kind, alias) };
}

/** Hashes of all values of a claim. */
export const hashesOf = ({ values }: Claim): ReadonlyArray<string> => values.map(({ hash }) => hash);

/** Those that live without end: a value in the overlap of a rotation is not among them. */
export const currentHashesOf = ({ values }: Claim): ReadonlyArray<string> =>
  values.filter(({ notAfter }) => notAfter === undefined).map(({ hash }) => hash);

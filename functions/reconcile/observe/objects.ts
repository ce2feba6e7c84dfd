// Custom resources of the operator: the objects of a run's target with everything that planning for them needs, read,
// validated and sorted by kind.
import {
  type Cluster,
  ClusterError,
  type KubeObject,
  type Resource,
  type Selection,
  toFieldSelector,
} from '#core/ports/cluster.ts';
import { toText } from '#core/rules/finding.ts';
import { gatewayInstances, type Kind, type KindName, kinds, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { ANNOTATION_NAMES } from '#crds/names/annotations.ts';
import { OWNED_LABEL } from '#crds/names/group.ts';
import { validate } from '#crds/validation/validate.ts';
import type { Violation } from '#crds/validation/violation.ts';
import { blocksOf } from '../key/own-blockers.ts';
import { PROCESS_LIMITS } from '../limits.ts';
import type { RunTarget } from '../run-target.ts';
import {
  createWorld,
  idOf,
  instancePathOf,
  isAbandoned,
  keysIn,
  type MalformedObject,
  type ObjectId,
  type OwnObject,
  type Path,
  type PlatformView,
  pathOf,
  scopeObjectsOf,
  unreadKey,
  type WorldBuilder,
} from '../world.ts';
import { boundsOf, createObjectMemory, type OversizedNamespace } from './object-memory.ts';

/** The world of a run. */
export interface RunWorld extends WorldBuilder {
  /** The instances of which every scope object is loaded, except those in oversized namespaces. */
  readonly complete: 'all' | Path | undefined;
  /** Whether the run only writes the key policies into rows of namespaces, and needs no claims but those and of Teams. */
  readonly isForPoliciesOnly: boolean;
  /** Oversized namespaces by name. Of their scope objects only those in deletion are loaded. */
  readonly oversizedNamespaces: ReadonlyMap<string, OversizedNamespace>;
}

type ObjectName = { readonly namespace: string; readonly name: string };

/** `objectBytes`: the bytes beyond ordinary objects that scope objects of one namespace may take. */
export async function loadObjects(
  { cluster, platform }: { readonly cluster: Cluster; readonly platform: PlatformView },
  target: RunTarget,
  objectBytes = PROCESS_LIMITS.objectBytes,
): Promise<RunWorld> {
  const complete =
    target.look === 'everywhere'
      ? 'all'
      : target.look === 'at' && target.kind === 'GatewayInstance'
        ? pathOf(target)
        : undefined;
  const found = createWorld(platform);
  const max = boundsOf(objectBytes, target.look);
  const scopeObjects = createObjectMemory<OwnObjectView>(max.scopeObjects, {
    whole: true,
    drop: (own) => {
      removeObject(found, own);
      const { metadata, object } = own;
      found.notLoaded.add(metadata.uid);
      if (object !== undefined && object.kind !== 'GatewayInstance')
        for (const [uid, generation] of blocksOf([object])) found.blocked.set(uid, generation);
      if (own.kind === 'VirtualKey' && isAbandoned(own)) found.disabled.add(own.metadata.uid);
    },
  });
  const instances = createObjectMemory<OwnObjectView>(max.instances, {
    whole: false,
    drop: (own) => {
      if (complete === 'all') return reject(found, own);
      removeObject(found, own);
      found.unobserved.set(pathOf(own.metadata), 'the trigger has no memory for this instance: a resync looks at it');
    },
  });
  const keep = (own: OwnObjectView) => {
    if (own.kind === 'VirtualKey' && own.object === undefined) found.disabled.add(own.metadata.uid);
    (own.kind === 'GatewayInstance' ? instances : scopeObjects).keep(own);
  };
  const take = (objects: ReadonlyArray<KubeObject | undefined>, isWanted?: IsWanted) => {
    for (const own of objects.flatMap((object) => (object && collect(found, object, isWanted)) ?? [])) keep(own);
  };
  const list: Loader['list'] = (kind, selection = {}, isWanted = undefined) =>
    ifServed(cluster, kind, () => cluster.listPages(kind, selection, (page) => take(page, isWanted)), undefined);
  const get = async (kind: Kind, { namespace, name }: ObjectName) =>
    take([await ifServed(cluster, kind, () => cluster.get(kind, namespace, name), undefined)]);
  const load: Loader = { found, list, get };
  if (target.look === 'everywhere') {
    // Instances are listed last: the instance of a listed VirtualKey is then in the list unless it is really gone.
    await Promise.all([list(virtualKeys), list(users), list(teams)]);
    await list(gatewayInstances);
  } else if (target.look === 'at') {
    await LOAD[target.kind](load, target);
    await loadReferred(load);
    if (target.kind === 'VirtualKey' || target.kind === 'User') await loadTeams(load, target);
    await loadInstances(load);
    await loadPolicyTeams(load);
    await loadInstances(load);
  } else if (target.look === 'policies') {
    await get(gatewayInstances, target);
    await loadPolicyTeams(load);
  }
  return {
    ...found,
    complete,
    isForPoliciesOnly: target.look === 'policies',
    oversizedNamespaces: new Map(scopeObjects.oversized().map((one) => [one.namespace, one])),
  };
}

/** Whether an object of a list is needed. Others are dropped while the list is read: it may be very long. */
type IsWanted = (object: OwnObject) => boolean;

interface Loader {
  readonly found: WorldBuilder;
  readonly list: (kind: Kind, selection?: Selection, isWanted?: IsWanted) => Promise<void>;
  readonly get: (kind: Kind, at: ObjectName) => Promise<void>;
}

const LOAD: Readonly<Record<KindName, (load: Loader, at: ObjectName) => Promise<void>>> = {
  GatewayInstance: async ({ list, get }, at) => {
    const fieldSelector = toFieldSelector({ 'spec.connectionRef.instanceRef.name': at.name });
    const isMember: IsWanted = (own) => own.kind !== 'GatewayInstance' && instancePathOf(own) === pathOf(at);
    await Promise.all([virtualKeys, users, teams].map((kind) => list(kind, { fieldSelector }, isMember)));
    await get(gatewayInstances, at);
  },
  VirtualKey: async (load, at) => {
    await load.get(virtualKeys, at);
    const owner = load.found.keys.get(pathOf(at))?.object.metadata.ownerReferences?.find(({ kind }) => kind === 'User');
    // A deleted VirtualKey may be one that its User, of the same name, creates again.
    await load.get(users, { namespace: at.namespace, name: owner?.name ?? at.name });
  },
  User: async ({ list, get }, { namespace, name }) => {
    const isVirtualKeyOfUser: IsWanted = (own) =>
      own.kind === 'VirtualKey' && (own.spec.userRef?.name === name || own.metadata.name === name);
    await get(users, { namespace, name });
    await list(virtualKeys, { namespace }, isVirtualKeyOfUser);
  },
  Team: async ({ list }, at) => {
    await Promise.all([teams, users, virtualKeys].map((kind) => list(kind, { namespace: at.namespace })));
  },
};

/**
 * Loads what planning for the loaded objects needs: Users and Teams of VirtualKeys, and the VirtualKeys with the names
 * of Users.
 */
async function loadReferred({ found, get }: Loader): Promise<void> {
  const requested = new Set<ObjectId>();
  /** The object that was read now; undefined if it was loaded before, or does not exist. */
  const load = async <T>(kind: Kind, at: ObjectName, have: ReadonlyMap<Path, T>): Promise<T | undefined> => {
    const id = idOf(kind.kind, at);
    if (have.has(pathOf(at)) || requested.has(id)) return undefined;
    requested.add(id);
    await get(kind, at);
    return have.get(pathOf(at));
  };
  // Each object is read once, however long a chain of Users and VirtualKeys is.
  let [keys, loadedUsers] = [keysIn(found), [...found.users.values()]];
  while (keys.length + loadedUsers.length > 0) {
    const ofKeys = keys.map(({ metadata: { namespace }, spec: { userRef, teamRef } }) =>
      Promise.all([
        userRef && load(users, { namespace, name: userRef.name }, found.users),
        teamRef && load(teams, { namespace, name: teamRef.name }, found.teams),
      ]),
    );
    const ofUsers = loadedUsers.map(({ metadata: { namespace, name } }) =>
      load(virtualKeys, { namespace, name }, found.keys),
    );
    const [referred, owned] = await Promise.all([Promise.all(ofKeys), Promise.all(ofUsers)]);
    loadedUsers = referred.flatMap(([user]) => user ?? []);
    keys = owned.flatMap((key) => key?.object ?? []);
  }
}

/** Loads the Teams that the loaded Users name or are members of: a namespace may have many large Teams. */
async function loadTeams({ found, list }: Loader, { namespace }: ObjectName): Promise<void> {
  if (found.users.size === 0) return;
  const named = new Set([...found.users.values()].flatMap(({ spec }) => spec.teamRefs.map(({ name }) => name)));
  const isTeamOfUsers: IsWanted = (own) =>
    own.kind === 'Team' &&
    !found.teams.has(pathOf(own.metadata)) &&
    (named.has(own.metadata.name) || own.spec.members.some(({ name }) => found.users.has(pathOf({ namespace, name }))));
  await list(teams, { namespace }, isTeamOfUsers);
}

/** Loads the instances of all loaded scope objects. */
async function loadInstances({ found, get }: Loader): Promise<void> {
  const named = new Map(
    scopeObjectsOf(found).map((scopeObject) => [
      instancePathOf(scopeObject),
      scopeObject.spec.connectionRef.instanceRef,
    ]),
  );
  await Promise.all([...named].map(([path, at]) => (found.listed.has(path) ? undefined : get(gatewayInstances, at))));
}

/**
 * Loads the Teams of the key policies of the loaded instances. The instances of these Teams are not loaded: the rows of
 * their namespaces would be planned without the Teams of their own policies.
 */
async function loadPolicyTeams({ found, get }: Loader): Promise<void> {
  const named = [...found.listed.values()].flatMap(({ metadata: { namespace }, spec: { keyPolicies = [] } }) =>
    keyPolicies.flatMap(({ teamRef }) => (teamRef === undefined ? [] : [{ namespace, name: teamRef.name }])),
  );
  const missing = new Map(named.map((at) => [pathOf(at), at]));
  for (const path of found.teams.keys()) missing.delete(path);
  await Promise.all(missing.values().map((at) => get(teams, at)));
}

/**
 * `absent` if the API server does not serve the kind: its CRD is gone. A 404 for any other cause is thrown: it must not
 * count as an empty list.
 */
export async function ifServed<T, const A>(
  cluster: Cluster,
  kind: Resource,
  read: () => Promise<T>,
  absent: A,
): Promise<T | A> {
  try {
    return await read();
  } catch (error) {
    const isNotFound = error instanceof ClusterError && error.status === 404;
    if (isNotFound && !(await cluster.serves(kind))) return absent;
    throw error;
  }
}

/** Adds an object and returns it. Ignores objects of other kinds and objects that are not wanted. */
function collect(into: WorldBuilder, object: KubeObject, isWanted: IsWanted = () => true): OwnObjectView | undefined {
  const own = toOwnObjectView(object);
  if (own === undefined || (own.object !== undefined && !isWanted(own.object))) return undefined;
  putObject(into, own);
  return own;
}

/** Adds an object in place of its previous version. A version that cannot be read has no spec. */
export function putObject(into: WorldBuilder, own: OwnObjectView): void {
  const id = idOf(own.kind, own.metadata);
  const [object, path] = [own.object, pathOf(own.metadata)];
  const [instance, key] = [into.instances.get(path), into.keys.get(path)];
  removeObject(into, own);
  if (own.violations.length > 0) into.violations.set(id, own.violations);
  if (object === undefined) putMalformed(into, own);
  else if (object.kind === 'GatewayInstance') {
    into.listed.set(path, object);
    if (instance !== undefined) into.instances.set(path, { ...instance, object });
  } else if (object.kind === 'VirtualKey') into.keys.set(path, { ...(key ?? unreadKey(object)), object });
  else if (object.kind === 'User') into.users.set(path, object);
  else into.teams.set(path, object);
}

/** Nothing is planned for the scope objects of a malformed instance either. */
function putMalformed(into: WorldBuilder, own: MalformedObject): void {
  into.malformed.set(idOf(own.kind, own.metadata), own);
  if (own.kind === 'GatewayInstance') into.unobserved.set(pathOf(own.metadata), toText(own.violations));
}

/** Removes an object, as if it had not been listed. */
export function removeObject(
  from: WorldBuilder,
  { kind, metadata }: Pick<OwnObject, 'kind'> & { readonly metadata: ObjectName },
): void {
  const [id, path] = [idOf(kind, metadata), pathOf(metadata)];
  const maps = { GatewayInstance: from.instances, VirtualKey: from.keys, User: from.users, Team: from.teams };
  maps[kind].delete(path);
  if (kind === 'GatewayInstance') from.listed.delete(path);
  from.violations.delete(id);
  from.malformed.delete(id);
}

/** Replaces an instance that is too large by a malformed object, of which little is kept. */
function reject(from: WorldBuilder, instance: OwnObjectView): void {
  removeObject(from, instance);
  const { kind, metadata, status } = instance;
  putMalformed(from, { kind, metadata, status, violations: [TOO_LARGE_TOGETHER] });
}

const TOO_LARGE_TOGETHER: Violation = {
  rule: 'TooLargeTogether',
  type: 'Too many',
  path: 'spec',
  value: undefined,
  message:
    'the GatewayInstances of this namespace together need more memory than a resync has for them; shorten or remove the largest of them',
};

/** An object with its defaults, or undefined if it is malformed; and the violations of rules about its own spec. */
export interface OwnObjectView extends MalformedObject {
  readonly object: OwnObject | undefined;
}

/** Validates as the admission webhook does. A status that cannot be read counts as absent, and is written again. */
export function toOwnObjectView(object: KubeObject): OwnObjectView | undefined {
  const kind = kinds.find((own) => own.kind === object.kind && own.apiVersion === object.apiVersion);
  if (kind === undefined) return undefined;
  const { spec, violations: found } = validate(kind, object);
  const violations = hasManyFinalizers(object) ? [...found, TOO_MANY_FINALIZERS] : found;
  const parsed = kind.status.safeParse(object.status);
  const status = parsed.success ? (parsed.data as OwnObject['status']) : undefined;
  const own = { apiVersion: kind.apiVersion, kind: kind.kind, metadata: toMetadata(object), status };
  const isMalformed = spec === undefined || violations.some(({ rule }) => UNPLANNABLE.has(rule));
  // The API server sets the metadata that our types require; the kind decides the type of the spec.
  return {
    ...own,
    violations: violations.map(withoutLargeValue),
    object: isMalformed ? undefined : ({ ...own, spec } as OwnObject),
  };
}

/**
 * Planning reads every duration, so an endless duration is a violation too; and the Secret of a VirtualKey must fit in
 * memory.
 */
const UNPLANNABLE: ReadonlySet<string> = new Set(['DurationTooLong', 'TooManyMarks', 'TooManyFinalizers']);

/** Messages show only the beginning of a text, so the object is not kept for its text. */
function withoutLargeValue(violation: Violation): Violation {
  const { value } = violation;
  const isLarge = typeof value === 'object' || (typeof value === 'string' && value.length > MAX_VALUE);
  return isLarge ? { ...violation, value: undefined } : violation;
}

const MAX_VALUE = 1024;

/**
 * The maximum characters of all finalizers: the operator's finalizer cannot be removed from a list that is not kept.
 */
const MAX_FINALIZERS = 16_384;
const hasManyFinalizers = ({ metadata: { finalizers = [] } }: KubeObject) =>
  finalizers.join('').length > MAX_FINALIZERS;
const TOO_MANY_FINALIZERS: Violation = {
  rule: 'TooManyFinalizers',
  type: 'Too many',
  path: 'metadata.finalizers',
  value: undefined,
  message: `may have at most ${MAX_FINALIZERS} characters in all; remove some finalizers`,
};

const MAX_OWNERS = 16;

/** Metadata that planning reads. Other metadata may take up to 1.5 MB of an object. */
function toMetadata(object: KubeObject): OwnObject['metadata'] {
  const { labels, annotations, ownerReferences, finalizers, ...rest } = object.metadata;
  // The API server sets what our types require.
  const kept = rest as OwnObject['metadata'];
  return {
    ...(Object.fromEntries(Object.entries(kept).filter(([member]) => KEPT_METADATA.has(member))) as typeof kept),
    ...(finalizers && !hasManyFinalizers(object) && { finalizers }),
    ...(labels && { labels: keepRead(labels) }),
    ...(annotations && { annotations: keepRead(annotations) }),
    ...(ownerReferences && {
      ownerReferences: ownerReferences
        .filter(({ kind, controller }) => kind === 'User' || controller === true)
        .slice(0, MAX_OWNERS),
    }),
  };
}

const KEPT_METADATA: ReadonlySet<string> = new Set([
  ...['name', 'namespace', 'uid', 'resourceVersion', 'generation'],
  ...['creationTimestamp', 'deletionTimestamp'],
]);

/** Labels and annotations that planning reads. */
const READ_NAMES = [OWNED_LABEL, ...ANNOTATION_NAMES];

/** Values that are too long are left out: the longest value that the operator uses is the name of a user. */
const keepRead = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    READ_NAMES.flatMap((name) => {
      const text = Object.hasOwn(texts, name) ? texts[name] : undefined;
      return text === undefined || text.length > MAX_VALUE ? [] : [[name, text]];
    }),
  );

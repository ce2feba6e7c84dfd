// Facts about what an object refers to, gathered once and side by side: the only file of admission that asks the cluster.
import { admitsNamespace, needsLabels } from '#core/allowed-namespaces.ts';
import { keySecretName, userKeyName } from '#core/names.ts';
import {
  type Cluster,
  type KubeObject,
  RESOURCES,
  type Requester,
  type Resource,
  toFieldSelector,
} from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import type { TakenAlias } from '#core/rules/alias.ts';
import { type InstanceName, isSameInstance } from '#core/rules/instance.ts';
import type { Referred } from '#core/rules/references.ts';
import type { ReadSecret, SecretData } from '#core/rules/secrets.ts';
import { ConnectionRef } from '#crds/fragments.ts';
import { GatewayInstanceSpec } from '#crds/gateway-instance.ts';
import { OWNED, OWNED_LABEL } from '#crds/group.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/resources.ts';
import { isMap, type Json } from '#crds/shapes.ts';
import type { TeamSpec } from '#crds/team.ts';
import type { UserSpec } from '#crds/user.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { Metadata } from './subject.ts';

/** Whom the facts are asked of, and for whom. */
export interface Ask {
  readonly cluster: Pick<Cluster, 'get' | 'list' | 'may'>;
  readonly hash: Hash;
  readonly user: Requester;
}

interface Of<Spec> {
  readonly metadata: Metadata;
  readonly spec: Spec;
  readonly old: Spec | undefined;
}

/** No list of ours may cost more than one page, however many keys there are. */
export const MAX_KEYS = 500;
const INSTANCE_FIELD = 'spec.connectionRef.instanceRef.name';

export interface InstanceFacts {
  /** By name; what the user may not read is missing. */
  readonly secrets: ReadonlyMap<string, ReadSecret>;
  /** Models that this update takes away, each with the keys that are restricted to it. */
  readonly goneModels: ReadonlyMap<string, ReadonlyArray<KubeObject>>;
  /** Whether there may be more keys than were looked at. */
  readonly isWholePage: boolean;
  /** Indexes of entries that have no price, neither of their own nor a listed one. */
  readonly unpriced: ReadonlySet<number>;
}

export async function instanceFacts(of: Of<GatewayInstanceSpec>, ask: Ask): Promise<InstanceFacts> {
  const { metadata, spec } = of;
  const credentials = spec.models.flatMap(({ modelCredentials }) => modelCredentials?.nameRef ?? []);
  const names = [...new Set([spec.databaseSecretRef.nameRef, spec.redisSecretRef.nameRef, ...credentials])];
  const gone = of.old === undefined ? new Set<string>() : servedBy(of.old).difference(servedBy(spec));
  const [secrets, keys, unpriced] = await Promise.all([
    Promise.all(names.map(async (name) => [name, toRead(await findSecret(metadata.namespace, name, ask))] as const)),
    gone.size === 0 ? [] : findKeys(metadata, ask),
    findUnpriced(spec),
  ]);
  const restrictedTo = (model: string) => keys.filter(({ spec }) => isMap(spec) && listOf(spec.models).includes(model));
  const goneModels = new Map([...gone].map((model) => [model, restrictedTo(model)]));
  return { secrets: new Map(secrets), goneModels, isWholePage: keys.length >= MAX_KEYS, unpriced };
}

/** What every key, user and team refers to. Undefined: not there, or it does not admit the namespace; nobody can tell the two apart. */
export interface MemberFacts {
  readonly instance: { readonly served: ReadonlySet<string>; readonly isDeleted: boolean } | undefined;
}

type Holder = TakenAlias['holder'] | undefined;

export interface KeyFacts extends MemberFacts {
  /** The other key that has the alias. */
  readonly aliasHolder: Holder;
  readonly user: Referred | undefined;
  readonly team: Referred | undefined;
  /** The Secret that the key would write into, where it is there and another's, as far as the user may read it. */
  readonly foreignSecret: string | undefined;
}

export async function keyFacts({ metadata, spec }: Of<VirtualKeySpec>, ask: Ask): Promise<KeyFacts> {
  const { namespace, name } = metadata;
  const instance = findInstance(metadata, spec, ask);
  const alias = { resource: virtualKeys, field: 'spec.keyAlias', alias: spec.keyAlias, owner: name };
  const [found, aliasHolder, user, team, foreignSecret] = await Promise.all([
    instance,
    whenAdmitted(instance, () => findHolder(alias, metadata, spec, ask)),
    spec.userRef && findReferred(users, namespace, spec.userRef.name, ask),
    spec.teamRef && findReferred(teams, namespace, spec.teamRef.name, ask),
    name === undefined ? undefined : findForeignSecret(namespace, name, spec.secretTemplate?.name, ask),
  ]);
  return { instance: found, aliasHolder, user, team, foreignSecret };
}

export interface UserFacts extends MemberFacts {
  /** The other user that has the e-mail address. */
  readonly addressHolder: Holder;
  /** The other key that has the alias that the user's key would get. */
  readonly aliasHolder: Holder;
  /** In the order of `teamRefs`. */
  readonly teams: ReadonlyArray<Referred | undefined>;
  /** The VirtualKey of the user's name, where the user does not own it. */
  readonly foreignKey: string | undefined;
}

export async function userFacts({ metadata, spec }: Of<UserSpec>, ask: Ask): Promise<UserFacts> {
  const { namespace, name } = metadata;
  const instance = findInstance(metadata, spec, ask);
  const owner = name === undefined ? undefined : userKeyName(name);
  const address = { resource: users, field: 'spec.userEmail', alias: spec.userEmail, owner: name };
  const alias = spec.autoCreateKey ? spec.keyAlias : undefined;
  const [found, addressHolder, aliasHolder, ofTeams, foreignKey] = await Promise.all([
    instance,
    whenAdmitted(instance, () => findHolder(address, metadata, spec, ask)),
    whenAdmitted(instance, () =>
      alias === undefined
        ? undefined
        : findHolder({ resource: virtualKeys, field: 'spec.keyAlias', alias, owner }, metadata, spec, ask),
    ),
    Promise.all(spec.teamRefs.map((team) => findReferred(teams, namespace, team.name, ask))),
    spec.autoCreateKey && owner !== undefined ? findForeignKey(metadata, owner, ask) : undefined,
  ]);
  return { instance: found, addressHolder, aliasHolder, teams: ofTeams, foreignKey };
}

export interface TeamFacts extends MemberFacts {
  /** The other team that has the alias. */
  readonly aliasHolder: Holder;
}

export async function teamFacts({ metadata, spec }: Of<TeamSpec>, ask: Ask): Promise<TeamFacts> {
  const instance = findInstance(metadata, spec, ask);
  const alias = { resource: teams, field: 'spec.teamAlias', alias: spec.teamAlias, owner: metadata.name };
  const holder = whenAdmitted(instance, () => findHolder(alias, metadata, spec, ask));
  const [found, aliasHolder] = await Promise.all([instance, holder]);
  return { instance: found, aliasHolder };
}

interface Connected {
  readonly connectionRef: ConnectionRef;
}

async function findInstance(
  { namespace: from }: Metadata,
  { connectionRef }: Connected,
  { cluster }: Ask,
): Promise<MemberFacts['instance']> {
  const { namespace, name } = connectionRef.instanceRef;
  const instance = await cluster.get(gatewayInstances, namespace, name);
  if (instance === undefined) return undefined;
  const spec = isMap(instance.spec) ? instance.spec : {};
  const { success, data: allowed } = GatewayInstanceSpec.shape.allowedNamespaces.safeParse(spec.allowedNamespaces);
  if (!success) return undefined;
  const home = needsLabels(allowed) ? await cluster.get(RESOURCES.namespaces, undefined, from) : undefined;
  if (!admitsNamespace(allowed, namespace, { name: from, labels: home?.metadata.labels ?? {} })) return undefined;
  return { served: servedBy(spec), isDeleted: instance.metadata.deletionTimestamp !== undefined };
}

/** Nothing else about an instance is looked up where it does not admit the namespace. */
const whenAdmitted = async <T>(instance: Promise<MemberFacts['instance']>, find: () => T | Promise<T>) =>
  (await instance) === undefined ? undefined : find();

/** What an instance serves: the `modelName`s of its entries. */
const servedBy = ({ models }: Json | GatewayInstanceSpec): ReadonlySet<string> =>
  new Set(
    listOf(models).flatMap((entry) => (isMap(entry) && typeof entry.modelName === 'string' ? entry.modelName : [])),
  );

interface Wanted {
  readonly resource: Resource;
  /** A selectable field, and what stands there. */
  readonly field: string;
  readonly alias: string;
  /** The object of the same namespace that may have it. */
  readonly owner: string | undefined;
}

/** Advice only: two creates race, and the claim in the database decides. */
async function findHolder(
  { resource, field, alias, owner }: Wanted,
  { namespace }: Metadata,
  { connectionRef: { instanceRef } }: Connected,
  { cluster }: Ask,
): Promise<Holder> {
  const found = await select(resource, { [field]: alias, [INSTANCE_FIELD]: instanceRef.name }, cluster);
  const isOwner = ({ metadata }: KubeObject) => metadata.namespace === namespace && metadata.name === owner;
  const other = found.find((one) => !isOwner(one) && isOf(one, instanceRef));
  return other && { kind: resource.kind, namespace: other.metadata.namespace, name: other.metadata.name };
}

async function findReferred(resource: Resource, namespace: string, name: string, { cluster }: Ask) {
  const found = await cluster.get(resource, namespace, name);
  return found && { instance: connectionOf(found), isDeleted: !isLive(found) };
}

/** Missing, and not theirs to read: nobody can tell the two apart. */
async function findSecret(namespace: string, name: string, { cluster, user }: Ask): Promise<KubeObject | undefined> {
  const may = await cluster.may(user, 'get', RESOURCES.secrets, namespace, name);
  return may ? cluster.get(RESOURCES.secrets, namespace, name) : undefined;
}

/** A user who may read a Secret may be told the names of its entries. */
const toRead = (secret: KubeObject | undefined): ReadSecret =>
  secret && { data: isMap(secret.data) ? (secret.data as SecretData) : {}, listed: true };

async function findForeignSecret(namespace: string, key: string, template: string | undefined, ask: Ask) {
  const wanted = keySecretName(key, template, ask.hash);
  const secret = await findSecret(namespace, wanted, ask);
  if (secret === undefined) return undefined;
  const { labels, ownerReferences = [] } = secret.metadata;
  const owners = ownerReferences.filter(({ kind }) => kind === 'VirtualKey');
  // Ours by its label, and no other key's. One without an owner was retained: its value decides, at reconcile.
  const isOurs = labels?.[OWNED_LABEL] === OWNED && (owners.length === 0 || owners.some(({ name }) => name === key));
  return isOurs ? undefined : wanted;
}

async function findForeignKey({ namespace, uid }: Metadata, name: string, { cluster }: Ask) {
  const key = await cluster.get(virtualKeys, namespace, name);
  if (key === undefined || !isLive(key)) return undefined;
  const owners = key.metadata.ownerReferences ?? [];
  return uid !== undefined && owners.some((owner) => owner.uid === uid) ? undefined : key.metadata.name;
}

async function findKeys({ namespace, name }: Metadata, { cluster }: Ask): Promise<ReadonlyArray<KubeObject>> {
  if (name === undefined) return [];
  const found = await select(virtualKeys, { [INSTANCE_FIELD]: name }, cluster);
  return found.filter((key) => isOf(key, { namespace, name }));
}

/** The table of listed prices is large: it is loaded with the first entry that leaves its price to it. */
async function findUnpriced({ models }: GatewayInstanceSpec): Promise<ReadonlySet<number>> {
  const unsaid = models.flatMap(
    ({ gatewayParams: { inputCostPerMillionTokens, outputCostPerMillionTokens } }, index) =>
      inputCostPerMillionTokens === undefined || outputCostPerMillionTokens === undefined ? index : [],
  );
  if (unsaid.length === 0) return new Set();
  const { entryPrice } = await import('#core/price-list.ts');
  return new Set(unsaid.filter((index) => entryPrice(models[index]?.gatewayParams ?? {}).price === undefined));
}

/** At most one page of objects with these selectable fields, in all namespaces; those being deleted are gone already. */
async function select(resource: Resource, fields: Readonly<Record<string, string>>, cluster: Ask['cluster']) {
  return (await cluster.list(resource, { fieldSelector: toFieldSelector(fields), limit: MAX_KEYS })).filter(isLive);
}

const isLive = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
const isOf = (object: KubeObject, instance: InstanceName): boolean => {
  const connection = connectionOf(object);
  return connection !== undefined && isSameInstance(connection, instance);
};
const connectionOf = ({ spec }: KubeObject): InstanceName | undefined =>
  ConnectionRef.safeParse(isMap(spec) ? spec.connectionRef : undefined).data?.instanceRef;
const listOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : []);

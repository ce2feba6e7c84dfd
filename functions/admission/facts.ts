// Facts about the objects that an object refers to, gathered once and concurrently: the only file of admission that
// asks the cluster.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { listOf } from '#core/json/json.ts';
import { keySecretName } from '#core/keys/object-names.ts';
import { namesPrice, type PricedParams } from '#core/models/entry-model.ts';
import { type KubeObject, RESOURCES, type Requester, type Resource, toFieldSelector } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { admitsNamespace, needsLabels } from '#core/rules/allowed-namespaces.ts';
import type { TakenAlias } from '#core/rules/conflicts.ts';
import { type InstanceName, isSameInstance } from '#core/rules/instance.ts';
import type { Reference, ReferenceFacts } from '#core/rules/references.ts';
import { createSecretCheck, type SecretData, type SecretFindings, toReadSecret } from '#core/rules/secrets.ts';
import { AllowedNamespaces } from '#crds/kinds/allowed-namespaces.ts';
import type { GatewayInstanceSpec } from '#crds/kinds/gateway-instance.ts';
import { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import type { TeamSpec } from '#crds/kinds/team.ts';
import type { UserSpec } from '#crds/kinds/user.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import { OWNED, OWNED_LABEL } from '#crds/names/group.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/names/resources.ts';
import { isMap, type Json } from '#crds/validation/json-shapes.ts';
import type { Readable } from './check.ts';
import type { ClusterReads } from './reads.ts';
import type { Metadata } from './subject.ts';

/** The cluster to ask, and the user on whose behalf. */
export interface FactContext {
  readonly cluster: ClusterReads;
  readonly hash: Hash;
  readonly user: Requester;
  /** Aborts when the review is given up. */
  readonly signal: AbortSignal;
  /** Domains whose labels and annotations the Secret of a key may have. */
  readonly secretPrefixes: ReadonlyArray<string>;
}

/** None of our lists may cost more than one page, however many keys there are. */
const MAX_KEYS = 500;
/** Objects that are looked at for the one which has an alias. */
const MAX_HOLDERS = 20;
const INSTANCE_FIELD = 'spec.connectionRef.instanceRef.name';

/** Objects of one kind that a review reads at the same time: one has up to a megabyte, of which little is kept. */
const WIDTH = 4;

interface RestrictedKey {
  readonly path: string;
  /** Those of the removed models that it names. */
  readonly models: ReadonlyArray<string>;
}

export interface InstanceFacts {
  /** Findings in Secrets, by name. A Secret that the user may not read counts as missing. */
  readonly secrets: ReadonlyMap<string, SecretFindings>;
  /** Models that this update removes. */
  readonly removedModels: ReadonlySet<string>;
  /** Keys of the instance that are restricted to a removed model, of a page of its keys. */
  readonly restricted: ReadonlyArray<RestrictedKey>;
  /** Whether there are more keys than that page has. */
  readonly hasMoreKeys: boolean;
  /** Indexes of entries that have no price, neither of their own nor a listed one, or half a price of their own. */
  readonly unpriced: ReadonlySet<number>;
}

export async function instanceFacts(of: Readable<GatewayInstanceSpec>, ask: FactContext): Promise<InstanceFacts> {
  const { metadata, spec } = of;
  const old = of.old();
  const removedModels = old === undefined ? new Set<string>() : servedBy(old).difference(servedBy(spec));
  const [secrets, keys, unpriced] = await Promise.all([
    findInSecrets(spec, metadata.namespace, ask),
    findRestricted(metadata, removedModels, ask),
    findUnpriced(spec),
  ]);
  return { secrets, removedModels, ...keys, unpriced };
}

export interface MemberFacts {
  /** Undefined: the instance does not exist, or does not admit the namespace; findings do not tell which. */
  readonly instance: { readonly served: ReadonlySet<string>; readonly isDeleted: boolean } | undefined;
  /**
   * Wanted aliases and addresses that another object of the instance has. Only advice: two creates race, and the claim
   * decides.
   */
  readonly taken: ReadonlyArray<TakenAlias>;
  /** Users and Teams that the object names, in its order. */
  readonly references: ReadonlyArray<readonly [Reference, ReferenceFacts | undefined]>;
  /**
   * The name that our Secret or VirtualKey would get, where a foreign one has it; a Secret only where the user may read
   * it.
   */
  readonly foreign: string | undefined;
}

export interface KeyFacts extends MemberFacts, Pick<FactContext, 'secretPrefixes'> {}

export async function keyFacts(key: Readable<VirtualKeySpec>, ask: FactContext): Promise<KeyFacts> {
  const { keyAlias: alias, userRef, teamRef, secretTemplate } = key.spec;
  const facts = await memberFacts(key, ask, {
    aliases: [{ resource: virtualKeys, path: 'spec.keyAlias', alias, owner: key.metadata.name }],
    names: [
      ['User', 'spec.userRef.name', userRef?.name],
      ['Team', 'spec.teamRef.name', teamRef?.name],
    ],
    foreign: findForeignSecret(key.metadata, secretTemplate?.name, ask),
  });
  return { ...facts, secretPrefixes: ask.secretPrefixes };
}

export function userFacts({ metadata, spec, ...user }: Readable<UserSpec>, ask: FactContext): Promise<MemberFacts> {
  // The VirtualKey of a User has the User's name.
  const key = spec.autoCreateKey ? metadata.name : undefined;
  const keyAlias = spec.autoCreateKey ? spec.keyAlias : undefined;
  return memberFacts({ metadata, spec, ...user }, ask, {
    aliases: [
      { resource: users, path: 'spec.userEmail', alias: spec.userEmail, owner: metadata.name },
      { resource: virtualKeys, path: 'spec.keyAlias', alias: keyAlias, owner: key },
    ],
    names: spec.teamRefs.map(({ name }, index) => ['Team', `spec.teamRefs[${index}].name`, name]),
    foreign: key === undefined ? undefined : findForeignKey(metadata, key, ask),
  });
}

export function teamFacts(team: Readable<TeamSpec>, ask: FactContext): Promise<MemberFacts> {
  const alias = { resource: teams, path: 'spec.teamAlias', alias: team.spec.teamAlias, owner: team.metadata.name };
  return memberFacts(team, ask, { aliases: [alias], names: [], foreign: undefined });
}

interface Member {
  readonly metadata: Metadata;
  readonly spec: { readonly connectionRef: ConnectionRef };
}

interface WantedAlias {
  readonly resource: Resource;
  /** The path of the alias: a selectable field of the resource, and a field of the object that wants the alias. */
  readonly path: string;
  readonly alias: string | undefined;
  /** The object of the same namespace that may have it. */
  readonly owner: string | undefined;
}

interface FactRequest {
  readonly aliases: ReadonlyArray<WantedAlias>;
  readonly names: ReadonlyArray<readonly [kind: Reference['kind'], path: string, name: string | undefined]>;
  readonly foreign: Promise<string | undefined> | undefined;
}

async function memberFacts(member: Member, ask: FactContext, wanted: FactRequest): Promise<MemberFacts> {
  const { namespace } = member.metadata;
  const findTaken = async () => {
    const instance = await findInstance(member, ask);
    // An instance that does not admit the namespace is not looked at further.
    const taken = instance && (await Promise.all(wanted.aliases.map((alias) => findHolder(alias, member, ask))));
    return { instance, taken: (taken ?? []).filter((alias) => alias !== undefined) };
  };
  const references = wanted.names.flatMap(([kind, path, name]): Reference[] =>
    name === undefined ? [] : [{ kind, path, name, namespace }],
  );
  const [{ instance, taken }, referred, foreign] = await Promise.all([
    findTaken(),
    mapConcurrent(references, async (reference) => [reference, await findReferred(reference, ask)] as const, WIDTH),
    wanted.foreign,
  ]);
  return { instance, taken, references: referred, foreign };
}

async function findInstance({ metadata, spec: { connectionRef } }: Member, { cluster }: FactContext) {
  const { namespace: from } = metadata;
  const { namespace, name } = connectionRef.instanceRef;
  const instance = await cluster.get(gatewayInstances, namespace, name);
  if (instance === undefined) return undefined;
  const spec = isMap(instance.spec) ? instance.spec : {};
  const { success, data: allowed } = AllowedNamespaces.prefault({}).safeParse(spec.allowedNamespaces);
  if (!success) return undefined;
  const home = needsLabels(allowed) ? await cluster.get(RESOURCES.namespaces, undefined, from) : undefined;
  if (!admitsNamespace(allowed, namespace, { name: from, labels: home?.metadata.labels ?? {} })) return undefined;
  return { served: servedBy(spec), isDeleted: instance.metadata.deletionTimestamp !== undefined };
}

/** The models that an instance serves: the `modelName`s of its entries. */
const servedBy = ({ models }: Json | GatewayInstanceSpec): ReadonlySet<string> =>
  new Set(
    listOf(models).flatMap((entry) => (isMap(entry) && typeof entry.modelName === 'string' ? entry.modelName : [])),
  );

async function findHolder(
  { resource, path, alias, owner }: WantedAlias,
  { metadata: { namespace: from }, spec }: Member,
  { cluster }: FactContext,
): Promise<TakenAlias | undefined> {
  if (alias === undefined) return undefined;
  const { instanceRef: instance } = spec.connectionRef;
  let holder: TakenAlias['holder'] | undefined;
  const fields = { [path]: alias, [INSTANCE_FIELD]: instance.name };
  await select(cluster, { resource, fields, limit: MAX_HOLDERS }, (one) => {
    const { namespace, name } = one.metadata;
    const isOwner = namespace === from && name === owner;
    if (!isOwner && isOf(one, instance)) holder ??= { kind: resource.kind, namespace, name };
  });
  return holder && { path, alias, instance, from, holder };
}

async function findReferred(
  { kind, namespace, name }: Reference,
  { cluster }: FactContext,
): Promise<ReferenceFacts | undefined> {
  const found = await cluster.get(kind === 'User' ? users : teams, namespace, name);
  return found && { instance: connectionOf(found), isDeleted: !isLive(found) };
}

/** Undefined: the Secret is missing, or the user may not read it; findings do not tell which. */
async function findSecret(
  namespace: string,
  name: string,
  { cluster, user }: FactContext,
): Promise<KubeObject | undefined> {
  const may = await cluster.may(user, 'get', RESOURCES.secrets, namespace, name);
  return may ? cluster.get(RESOURCES.secrets, namespace, name) : undefined;
}

/** A user who may read a Secret may see the names of its keys. */
async function findInSecrets(spec: GatewayInstanceSpec, namespace: string, ask: FactContext) {
  const credentials = spec.models.flatMap(({ modelCredentials }) => modelCredentials?.nameRef ?? []);
  const names = new Set([spec.databaseSecretRef.nameRef, spec.redisSecretRef.nameRef, ...credentials]);
  const check = createSecretCheck(spec, namespace);
  const found = new Map<string, SecretFindings>();
  const find = async (name: string) => {
    const secret = await findSecret(namespace, name, ask);
    const data = secret !== undefined && isMap(secret.data) ? (secret.data as SecretData) : {};
    found.set(name, check(name, secret && toReadSecret(data, true)));
  };
  await mapConcurrent(names, find, WIDTH);
  return found;
}

async function findForeignSecret({ namespace, name: key }: Metadata, template: string | undefined, ask: FactContext) {
  if (key === undefined) return undefined;
  const wanted = keySecretName(key, template, ask.hash);
  const secret = await findSecret(namespace, wanted, ask);
  if (secret === undefined) return undefined;
  // Which VirtualKey a Secret with our label belongs to, its value decides, in the reconciler.
  return secret.metadata.labels?.[OWNED_LABEL] === OWNED ? undefined : wanted;
}

async function findForeignKey({ namespace, uid }: Metadata, name: string, { cluster }: FactContext) {
  const key = await cluster.get(virtualKeys, namespace, name);
  if (key === undefined || !isLive(key)) return undefined;
  const owners = key.metadata.ownerReferences ?? [];
  return uid !== undefined && owners.some((owner) => owner.uid === uid) ? undefined : key.metadata.name;
}

async function findRestricted(
  { namespace, name }: Metadata,
  removed: ReadonlySet<string>,
  { cluster }: FactContext,
): Promise<Pick<InstanceFacts, 'restricted' | 'hasMoreKeys'>> {
  const restricted: RestrictedKey[] = [];
  if (name === undefined || removed.size === 0) return { restricted, hasMoreKeys: false };
  const keys = { resource: virtualKeys, fields: { [INSTANCE_FIELD]: name }, limit: MAX_KEYS };
  const hasMoreKeys = await select(cluster, keys, (key) => {
    if (!isOf(key, { namespace, name })) return;
    const named = new Set(listOf(isMap(key.spec) ? key.spec.models : undefined));
    const models = [...removed].filter((model) => named.has(model));
    if (models.length > 0) restricted.push({ path: `${key.metadata.namespace}/${key.metadata.name}`, models });
  });
  return { restricted, hasMoreKeys };
}

/**
 * Indexes of entries without a price. The price table is large: it is loaded with the first entry that names no price.
 */
async function findUnpriced({ models }: GatewayInstanceSpec): Promise<ReadonlySet<number>> {
  const withoutOwnPrice = models.flatMap(({ gatewayParams: { inputCostPerMillionTokens: input, ...params } }, index) =>
    input === undefined || params.outputCostPerMillionTokens === undefined ? index : [],
  );
  if (withoutOwnPrice.length === 0) return new Set();
  const { entryPrice } = await import('#core/money/price-list.ts');
  const isUnpriced = (params: PricedParams) => namesPrice(params) || entryPrice(params).price === undefined;
  return new Set(withoutOwnPrice.filter((index) => isUnpriced(models[index]?.gatewayParams ?? {})));
}

/**
 * Visits one page of the objects with these selectable fields, in all namespaces, without those that are being deleted.
 * Answers whether there are more. A key may have hundreds of kilobytes: `take` keeps what is needed of it.
 */
async function select(
  cluster: ClusterReads,
  { resource, fields, limit }: Search,
  take: (object: KubeObject) => void,
): Promise<boolean> {
  let more = false;
  await cluster.listPages(resource, { fieldSelector: toFieldSelector(fields), limit }, (objects, hasMore) => {
    for (const object of objects.filter(isLive)) take(object);
    more = hasMore;
  });
  return more;
}

interface Search {
  readonly resource: Resource;
  readonly fields: Readonly<Record<string, string>>;
  readonly limit: number;
}

const isLive = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
const isOf = (object: KubeObject, instance: InstanceName): boolean => {
  const connection = connectionOf(object);
  return connection !== undefined && isSameInstance(connection, instance);
};
const connectionOf = ({ spec }: KubeObject): InstanceName | undefined =>
  ConnectionRef.safeParse(isMap(spec) ? spec.connectionRef : undefined).data?.instanceRef;

// Facts about the objects that an object refers to, read once and concurrently. No other file of the admission webhook
// reads the cluster.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import { listOf } from '#core/json/json.ts';
import { keySecretName } from '#core/keys/object-names.ts';
import { namesPrice, type PricedParams } from '#core/models/entry-model.ts';
import { type KubeObject, RESOURCES, type Requester, type Resource, toFieldSelector } from '#core/ports/cluster.ts';
import type { Hash } from '#core/ports/platform.ts';
import { allowsNamespace, needsLabels } from '#core/rules/allowed-namespaces.ts';
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
import type { CheckedObject } from './check.ts';
import type { ClusterReads } from './reads.ts';
import type { Metadata } from './subject.ts';

/** The context of reading facts: the cluster, and the user for whom it is read. */
export interface FactContext {
  readonly cluster: ClusterReads;
  readonly hash: Hash;
  readonly user: Requester;
  /** Aborts when the review has ended without a decision. */
  readonly signal: AbortSignal;
  /** Domains whose labels and annotations the Secret of a VirtualKey may have. */
  readonly secretPrefixes: ReadonlyArray<string>;
}

/** VirtualKeys of the one page that is read of a list, however many there are. */
const MAX_KEYS = 500;
/** Objects that are read to find the one that has an alias. */
const MAX_HOLDERS = 20;
const INSTANCE_FIELD = 'spec.connectionRef.instanceRef.name';

/** Objects of one kind that a review reads concurrently: each may have a megabyte, of which little is kept. */
const MAX_READS = 4;

interface RestrictedKey {
  readonly path: string;
  /** The removed models that the VirtualKey names. */
  readonly models: ReadonlyArray<string>;
}

export interface InstanceFacts {
  /** Findings in Secrets, by the Secret's name. A Secret that the user may not read counts as missing. */
  readonly secrets: ReadonlyMap<string, SecretFindings>;
  /** Models that this update removes. */
  readonly removedModels: ReadonlySet<string>;
  /** VirtualKeys that are restricted to a removed model, among one page of the instance's VirtualKeys. */
  readonly restrictedKeys: ReadonlyArray<RestrictedKey>;
  /** Whether the instance has more VirtualKeys than that page. */
  readonly hasMoreKeys: boolean;
  /** Indexes of model entries without a price: neither their own (for input and output) nor a listed one. */
  readonly unpriced: ReadonlySet<number>;
}

export async function gatherInstanceFacts(
  object: CheckedObject<GatewayInstanceSpec>,
  context: FactContext,
): Promise<InstanceFacts> {
  const { metadata, spec } = object;
  const old = object.old();
  const removedModels = old === undefined ? new Set<string>() : servedModels(old).difference(servedModels(spec));
  const [secrets, keys, unpriced] = await Promise.all([
    findInSecrets(spec, metadata.namespace, context),
    findRestricted(metadata, removedModels, context),
    findUnpriced(spec),
  ]);
  return { secrets, removedModels, ...keys, unpriced };
}

export interface MemberFacts {
  /** Undefined: the instance does not exist, or does not allow the namespace. Findings do not show which. */
  readonly instance: { readonly served: ReadonlySet<string>; readonly isDeleted: boolean } | undefined;
  /**
   * Aliases and addresses of the object that another object of the instance has. Two objects may be created at the same
   * time, so the reconciler's claim decides, not this fact.
   */
  readonly takenAliases: ReadonlyArray<TakenAlias>;
  /** Users and Teams that the object names, in its order. */
  readonly references: ReadonlyArray<readonly [Reference, ReferenceFacts | undefined]>;
  /**
   * The name that the object's Secret or VirtualKey would get, if something else has it. A Secret that the user may not
   * read is not reported.
   */
  readonly occupiedName: string | undefined;
}

export interface KeyFacts extends MemberFacts, Pick<FactContext, 'secretPrefixes'> {}

export async function gatherKeyFacts(key: CheckedObject<VirtualKeySpec>, context: FactContext): Promise<KeyFacts> {
  const { keyAlias: alias, userRef, teamRef, secretTemplate } = key.spec;
  const facts = await gatherMemberFacts(key, context, {
    aliases: [{ resource: virtualKeys, path: 'spec.keyAlias', alias, allowedHolder: key.metadata.name }],
    references: [
      ['User', 'spec.userRef.name', userRef?.name],
      ['Team', 'spec.teamRef.name', teamRef?.name],
    ],
    occupiedName: findForeignSecret(key.metadata, secretTemplate?.name, context),
  });
  return { ...facts, secretPrefixes: context.secretPrefixes };
}

export function gatherUserFacts(
  { metadata, spec, ...user }: CheckedObject<UserSpec>,
  context: FactContext,
): Promise<MemberFacts> {
  // The VirtualKey of a User has the User's name.
  const key = spec.autoCreateKey ? metadata.name : undefined;
  const keyAlias = spec.autoCreateKey ? spec.keyAlias : undefined;
  return gatherMemberFacts({ metadata, spec, ...user }, context, {
    aliases: [
      { resource: users, path: 'spec.userEmail', alias: spec.userEmail, allowedHolder: metadata.name },
      { resource: virtualKeys, path: 'spec.keyAlias', alias: keyAlias, allowedHolder: key },
    ],
    references: spec.teamRefs.map(({ name }, index) => ['Team', `spec.teamRefs[${index}].name`, name]),
    occupiedName: key === undefined ? undefined : findForeignKey(metadata, key, context),
  });
}

export function gatherTeamFacts(team: CheckedObject<TeamSpec>, context: FactContext): Promise<MemberFacts> {
  const alias = {
    resource: teams,
    path: 'spec.teamAlias',
    alias: team.spec.teamAlias,
    allowedHolder: team.metadata.name,
  };
  return gatherMemberFacts(team, context, { aliases: [alias], references: [], occupiedName: undefined });
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
  /** The name of the object in the same namespace that may have the alias. */
  readonly allowedHolder: string | undefined;
}

interface MemberFactRequest {
  readonly aliases: ReadonlyArray<WantedAlias>;
  readonly references: ReadonlyArray<readonly [kind: Reference['kind'], path: string, name: string | undefined]>;
  readonly occupiedName: Promise<string | undefined> | undefined;
}

async function gatherMemberFacts(
  member: Member,
  context: FactContext,
  request: MemberFactRequest,
): Promise<MemberFacts> {
  const { namespace } = member.metadata;
  const findInstanceAndHolders = async () => {
    const instance = await findInstance(member, context);
    // If the instance does not allow the namespace, its aliases are not searched.
    const taken = instance && (await Promise.all(request.aliases.map((alias) => findHolder(alias, member, context))));
    return { instance, takenAliases: (taken ?? []).filter((alias) => alias !== undefined) };
  };
  const references = request.references.flatMap(([kind, path, name]): Reference[] =>
    name === undefined ? [] : [{ kind, path, name, namespace }],
  );
  const [{ instance, takenAliases }, referred, occupiedName] = await Promise.all([
    findInstanceAndHolders(),
    mapConcurrent(
      references,
      async (reference) => [reference, await findReferred(reference, context)] as const,
      MAX_READS,
    ),
    request.occupiedName,
  ]);
  return { instance, takenAliases, references: referred, occupiedName };
}

async function findInstance({ metadata, spec: { connectionRef } }: Member, { cluster }: FactContext) {
  const { namespace: from } = metadata;
  const { namespace, name } = connectionRef.instanceRef;
  const instance = await cluster.get(gatewayInstances, namespace, name);
  if (instance === undefined) return undefined;
  const spec = isMap(instance.spec) ? instance.spec : {};
  const { success, data: allowed } = AllowedNamespaces.prefault({}).safeParse(spec.allowedNamespaces);
  if (!success) return undefined;
  const namespaceObject = needsLabels(allowed) ? await cluster.get(RESOURCES.namespaces, undefined, from) : undefined;
  if (!allowsNamespace(allowed, namespace, { name: from, labels: namespaceObject?.metadata.labels ?? {} }))
    return undefined;
  return { served: servedModels(spec), isDeleted: instance.metadata.deletionTimestamp !== undefined };
}

/** The models that an instance serves: the `modelName`s of its entries. */
const servedModels = ({ models }: Json | GatewayInstanceSpec): ReadonlySet<string> =>
  new Set(
    listOf(models).flatMap((entry) => (isMap(entry) && typeof entry.modelName === 'string' ? entry.modelName : [])),
  );

async function findHolder(
  { resource, path, alias, allowedHolder }: WantedAlias,
  { metadata: { namespace: from }, spec }: Member,
  { cluster }: FactContext,
): Promise<TakenAlias | undefined> {
  if (alias === undefined) return undefined;
  const { instanceRef: instance } = spec.connectionRef;
  let holder: TakenAlias['holder'] | undefined;
  const fields = { [path]: alias, [INSTANCE_FIELD]: instance.name };
  await visitPage(cluster, { resource, fields, limit: MAX_HOLDERS }, (one) => {
    const { namespace, name } = one.metadata;
    const isAllowed = namespace === from && name === allowedHolder;
    if (!isAllowed && belongsTo(one, instance)) holder ??= { kind: resource.kind, namespace, name };
  });
  return holder && { path, alias, instance, from, holder };
}

async function findReferred(
  { kind, namespace, name }: Reference,
  { cluster }: FactContext,
): Promise<ReferenceFacts | undefined> {
  const found = await cluster.get(kind === 'User' ? users : teams, namespace, name);
  return found && { instance: instanceRefOf(found), isDeleted: !isLive(found) };
}

/** Undefined: the Secret is missing, or the user may not read it. Findings do not show which. */
async function findSecret(
  namespace: string,
  name: string,
  { cluster, user }: FactContext,
): Promise<KubeObject | undefined> {
  const may = await cluster.may(user, 'get', RESOURCES.secrets, namespace, name);
  return may ? cluster.get(RESOURCES.secrets, namespace, name) : undefined;
}

/** Findings may name the keys of a Secret, because the user may read the Secret. */
async function findInSecrets(spec: GatewayInstanceSpec, namespace: string, context: FactContext) {
  const credentials = spec.models.flatMap(({ modelCredentials }) => modelCredentials?.nameRef ?? []);
  const names = new Set([spec.databaseSecretRef.nameRef, spec.redisSecretRef.nameRef, ...credentials]);
  const check = createSecretCheck(spec, namespace);
  const found = new Map<string, SecretFindings>();
  const find = async (name: string) => {
    const secret = await findSecret(namespace, name, context);
    const data = secret !== undefined && isMap(secret.data) ? (secret.data as SecretData) : {};
    found.set(name, check(name, secret && toReadSecret(data, true)));
  };
  await mapConcurrent(names, find, MAX_READS);
  return found;
}

async function findForeignSecret(
  { namespace, name: key }: Metadata,
  template: string | undefined,
  context: FactContext,
) {
  if (key === undefined) return undefined;
  const wanted = keySecretName(key, template, context.hash);
  const secret = await findSecret(namespace, wanted, context);
  if (secret === undefined) return undefined;
  // A Secret with our label is not refused here: the reconciler decides by the key value whose Secret it is.
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
): Promise<Pick<InstanceFacts, 'restrictedKeys' | 'hasMoreKeys'>> {
  const restrictedKeys: RestrictedKey[] = [];
  if (name === undefined || removed.size === 0) return { restrictedKeys, hasMoreKeys: false };
  const keys = { resource: virtualKeys, fields: { [INSTANCE_FIELD]: name }, limit: MAX_KEYS };
  const hasMoreKeys = await visitPage(cluster, keys, (key) => {
    if (!belongsTo(key, { namespace, name })) return;
    const named = new Set(listOf(isMap(key.spec) ? key.spec.models : undefined));
    const models = [...removed].filter((model) => named.has(model));
    if (models.length > 0) restrictedKeys.push({ path: `${key.metadata.namespace}/${key.metadata.name}`, models });
  });
  return { restrictedKeys, hasMoreKeys };
}

/**
 * Indexes of model entries without a price. The price table is large, so it is loaded with the first model entry that
 * has no price of its own.
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
 * Calls `onObject` for one page of the objects with these selectable fields, in all namespaces, without those that are
 * being deleted. Returns whether there are more. Objects may have hundreds of kilobytes: `onObject` keeps only what is
 * needed.
 */
async function visitPage(
  cluster: ClusterReads,
  { resource, fields, limit }: PageSelection,
  onObject: (object: KubeObject) => void,
): Promise<boolean> {
  let more = false;
  await cluster.listPages(resource, { fieldSelector: toFieldSelector(fields), limit }, (objects, hasMore) => {
    for (const object of objects.filter(isLive)) onObject(object);
    more = hasMore;
  });
  return more;
}

interface PageSelection {
  readonly resource: Resource;
  readonly fields: Readonly<Record<string, string>>;
  readonly limit: number;
}

const isLive = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
const belongsTo = (object: KubeObject, instance: InstanceName): boolean => {
  const connection = instanceRefOf(object);
  return connection !== undefined && isSameInstance(connection, instance);
};
const instanceRefOf = ({ spec }: KubeObject): InstanceName | undefined =>
  ConnectionRef.safeParse(isMap(spec) ? spec.connectionRef : undefined).data?.instanceRef;

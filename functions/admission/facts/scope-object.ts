// Facts about a VirtualKey, User or Team: its instance, aliases that others have, and the objects that it names.

import { mapConcurrent } from '#core/concurrency/limiter.ts';
import type { Reason } from '#core/conditions/reasons.ts';
import { keySecretName } from '#core/keys/object-names.ts';
import { type KubeObject, RESOURCES, type Resource } from '#core/ports/cluster.ts';
import { allowsNamespace, needsLabels } from '#core/rules/allowed-namespaces.ts';
import type { TakenAlias } from '#core/rules/conflicts.ts';
import { policyNeedsLabels } from '#core/rules/key-policies.ts';
import type { Reference, ReferenceFacts } from '#core/rules/references.ts';
import type { ConnectionRef } from '#crds/kinds/shared-fields.ts';
import type { TeamSpec } from '#crds/kinds/team.ts';
import type { UserSpec } from '#crds/kinds/user.ts';
import type { VirtualKeySpec } from '#crds/kinds/virtual-key.ts';
import { OWNED_LABEL, OWNED_LABEL_VALUE } from '#crds/names/group.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/names/resources.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import type { CheckedObject } from '../check.ts';
import type { Metadata } from '../subject.ts';
import {
  belongsTo,
  type FactContext,
  findReferred,
  findSecret,
  INSTANCE_FIELD,
  isLive,
  MAX_READS,
  servedModels,
  visitPage,
} from './context.ts';
import { findMembership, type Membership, type PolicyFacts, readAccess, readPolicy } from './key-policy.ts';

/** Objects that are read to find the one that has an alias. */
const MAX_HOLDERS = 20;

export interface InstanceSummary extends PolicyFacts {
  readonly served: ReadonlySet<string>;
  readonly isDeleted: boolean;
}

export interface ScopeObjectFacts {
  /** Undefined: the instance does not exist, or does not allow the namespace. Findings do not show which. */
  readonly instance: InstanceSummary | undefined;
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
  /**
   * Whether the object names a Team, or its User is in one. Undefined: the User was not found, or no policy requires a
   * Team.
   */
  readonly hasTeam: boolean | undefined;
}

export interface KeyFacts extends ScopeObjectFacts, Pick<FactContext, 'secretPrefixes'> {}

export async function gatherKeyFacts(key: CheckedObject<VirtualKeySpec>, context: FactContext): Promise<KeyFacts> {
  const { keyAlias: alias, userRef, teamRef, secretTemplate } = key.spec;
  const facts = await gatherScopeObjectFacts(key, context, {
    aliases: [{ resource: virtualKeys, path: 'spec.keyAlias', alias, allowedHolder: key.metadata.name }],
    references: [
      ['User', 'spec.userRef.name', userRef?.name],
      ['Team', 'spec.teamRef.name', teamRef?.name],
    ],
    occupiedName: findForeignSecret(key.metadata, secretTemplate?.name, context),
    membership: { hasOwnTeam: teamRef !== undefined, user: userRef?.name, isUserItself: false },
  });
  return { ...facts, secretPrefixes: context.secretPrefixes };
}

export function gatherUserFacts(
  { metadata, spec, ...user }: CheckedObject<UserSpec>,
  context: FactContext,
): Promise<ScopeObjectFacts> {
  // The VirtualKey of a User has the User's name.
  const key = spec.autoCreateKey ? metadata.name : undefined;
  const keyAlias = spec.autoCreateKey ? spec.keyAlias : undefined;
  return gatherScopeObjectFacts({ metadata, spec, ...user }, context, {
    aliases: [
      { resource: users, path: 'spec.userEmail', alias: spec.userEmail, allowedHolder: metadata.name },
      { resource: virtualKeys, path: 'spec.keyAlias', alias: keyAlias, allowedHolder: key },
    ],
    references: spec.teamRefs.map(({ name }, index) => ['Team', `spec.teamRefs[${index}].name`, name]),
    occupiedName: key === undefined ? undefined : findForeignKey(metadata, key, context),
    // Without a VirtualKey of its own, no key policy applies to a User.
    membership: spec.autoCreateKey
      ? { hasOwnTeam: spec.teamRefs.length > 0, user: metadata.name, isUserItself: true }
      : undefined,
  });
}

export function gatherTeamFacts(team: CheckedObject<TeamSpec>, context: FactContext): Promise<ScopeObjectFacts> {
  const alias = {
    resource: teams,
    path: 'spec.teamAlias',
    alias: team.spec.teamAlias,
    allowedHolder: team.metadata.name,
  };
  return gatherScopeObjectFacts(team, context, {
    aliases: [alias],
    references: [],
    occupiedName: undefined,
    membership: undefined,
  });
}

interface CheckedScopeObject {
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

interface ScopeObjectFactRequest {
  readonly aliases: ReadonlyArray<WantedAlias>;
  readonly references: ReadonlyArray<readonly [kind: Reference['kind'], path: string, name: string | undefined]>;
  readonly occupiedName: Promise<string | undefined> | undefined;
  readonly membership: Membership | undefined;
}

async function gatherScopeObjectFacts(
  scopeObject: CheckedScopeObject,
  context: FactContext,
  request: ScopeObjectFactRequest,
): Promise<ScopeObjectFacts> {
  const { namespace } = scopeObject.metadata;
  const findInstanceAndHolders = async () => {
    const instance = await findInstance(scopeObject, context, request.membership !== undefined);
    // If the instance does not allow the namespace, its aliases are not searched.
    if (instance === undefined) return { instance, takenAliases: [], hasTeam: undefined };
    const [taken, hasTeam] = await Promise.all([
      Promise.all(request.aliases.map((alias) => findHolder(alias, scopeObject, context))),
      findMembership(request.membership, instance, scopeObject, context),
    ]);
    return { instance, takenAliases: taken.filter((alias) => alias !== undefined), hasTeam };
  };
  const references = request.references.flatMap(([kind, path, name]): Reference[] =>
    name === undefined ? [] : [{ kind, path, name, namespace }],
  );
  const [ofInstance, referred, occupiedName] = await Promise.all([
    findInstanceAndHolders(),
    mapConcurrent(
      references,
      async (reference) => [reference, await findReferred(reference, context)] as const,
      MAX_READS,
    ),
    request.occupiedName,
  ]);
  return { ...ofInstance, references: referred, occupiedName };
}

async function findInstance(
  { metadata, spec: { connectionRef } }: CheckedScopeObject,
  { cluster }: FactContext,
  hasPolicy: boolean,
): Promise<InstanceSummary | undefined> {
  const { namespace: from } = metadata;
  const { namespace, name } = connectionRef.instanceRef;
  const instance = await cluster.get(gatewayInstances, namespace, name);
  if (instance === undefined) return undefined;
  const access = readAccess(instance.spec);
  if (access === undefined) return undefined;
  const { allowedNamespaces, keyPolicies, blockedMessage } = access;
  const hasLabels = needsLabels(allowedNamespaces) || (hasPolicy && policyNeedsLabels(keyPolicies));
  const namespaceObject = hasLabels ? await cluster.get(RESOURCES.namespaces, undefined, from) : undefined;
  const labelled = { name: from, labels: namespaceObject?.metadata.labels ?? {} };
  if (!allowsNamespace(allowedNamespaces, namespace, labelled)) return undefined;
  return {
    served: servedModels(isMap(instance.spec) ? instance.spec : {}),
    isDeleted: instance.metadata.deletionTimestamp !== undefined,
    policy: hasPolicy ? readPolicy(access, labelled) : undefined,
    blockedMessage,
  };
}

async function findHolder(
  { resource, path, alias, allowedHolder }: WantedAlias,
  { metadata: { namespace: from }, spec }: CheckedScopeObject,
  { cluster }: FactContext,
): Promise<TakenAlias | undefined> {
  if (alias === undefined) return undefined;
  const { instanceRef: instance } = spec.connectionRef;
  let holder: TakenAlias['holder'] | undefined;
  const fields = { [path]: alias, [INSTANCE_FIELD]: instance.name };
  await visitPage(cluster, { resource, fields, limit: MAX_HOLDERS }, (one) => {
    const { namespace, name } = one.metadata;
    const isAllowed = namespace === from && name === allowedHolder;
    if (!isAllowed && belongsTo(one, instance) && !isWaiting(one)) holder ??= { kind: resource.kind, namespace, name };
  });
  return holder && { path, alias, instance, from, holder };
}

/**
 * Whether the object waits for its alias, which something else has: it keeps nobody from the alias. The reconciler
 * prefers the object that proves that a retained key is its own.
 */
function isWaiting({ status }: KubeObject): boolean {
  const conditions = isMap(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return conditions.some((one) => isMap(one) && one.type === 'Ready' && one.reason === ('AliasTaken' satisfies Reason));
}

async function findForeignSecret(
  { namespace, name: key }: Metadata,
  template: string | undefined,
  context: FactContext,
) {
  if (key === undefined) return undefined;
  const wanted = keySecretName(key, template, context.hash);
  const secret = await findSecret(namespace, wanted, context, { metadataOnly: true });
  if (secret === undefined) return undefined;
  // A Secret with our label is not refused here: the reconciler decides by the key value whose Secret it is.
  return secret.metadata.labels?.[OWNED_LABEL] === OWNED_LABEL_VALUE ? undefined : wanted;
}

async function findForeignKey({ namespace, uid }: Metadata, name: string, { cluster }: FactContext) {
  const key = await cluster.get(virtualKeys, namespace, name);
  if (key === undefined || !isLive(key)) return undefined;
  const owners = key.metadata.ownerReferences ?? [];
  return uid !== undefined && owners.some((owner) => owner.uid === uid) ? undefined : key.metadata.name;
}

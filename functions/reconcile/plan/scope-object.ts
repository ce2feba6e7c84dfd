// The scope of a VirtualKey, User or Team: the first claim of an alias wins. The policy, by which the gateway decides,
// follows the spec.

import type { MissingOwnerReason, OwnBlockingReason } from '#core/conditions/reasons.ts';
import { parseMoney } from '#core/money/money.ts';
import type { FurtherBudget, KeyPolicy, ScopePolicy } from '#core/ports/policy.ts';
import { digestOf } from '#core/ports/policy-digest.ts';
import { type Claim, SAME_OBJECT, SAME_PLACE } from '#core/ports/registry.ts';
import type { Finding } from '#core/rules/finding.ts';
import type { Team } from '#crds/kinds/team.ts';
import type { User } from '#crds/kinds/user.ts';
import type { VirtualKey } from '#crds/kinds/virtual-key.ts';
import { type Action, type ActionOf, about, aboutClaim, event, type ScopeValue } from '../action.ts';
import { differingMembers, sameJson } from '../json.ts';
import { alignmentOf, budgetedScopes, budgetOf, policyLimitsOf, renewedBudget } from '../key/budget.ts';
import { isOwnBlocked, ownBlockersOf } from '../key/own-blockers.ts';
import { expiryOf } from '../key/rotation.ts';
import { holdersOf, isLabelled, isOurs } from '../key/secret-shape.ts';
import {
  aliasOf,
  hasFinalizer,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  isDeleted,
  type KeyView,
  KIND_OF,
  type OrphanedClaim,
  observedHolder,
  type PresentSecret,
  type Problem,
  pathOf,
  presentSecret,
  retainedSecret,
  type ScopeObject,
  type World,
} from '../world.ts';
import { claimOf, isNamespaceAllowed } from './access.ts';
import { isOlder } from './claimants.ts';
import { canHoldersStillArrive, hasLedger } from './conditions-instance.ts';
import type { PlanContext } from './context.ts';
import { planAbandonment, planRetirement } from './deletion.ts';
import { namespaceClaim } from './namespaces.ts';

/** Why the values of a VirtualKey end although it continues to exist. */
export const NAMESPACE_NOT_ALLOWED = 'the instance no longer allows its namespace';

/** The steps of a User or Team that are possible now, in order. */
export function planScopeOwner(scopeObject: User | Team, context: PlanContext): Action[] {
  if (isDeleted(scopeObject))
    return (hasFinalizer(scopeObject) ? planRetirement : planAbandonment)(scopeObject, context);
  const access = context.access(scopeObject);
  if (access.state !== 'allowed' || context.world.failures.has(idOf(scopeObject.kind, scopeObject.metadata))) return [];
  const { instance } = access;
  return [...planFinalizer(scopeObject), ...(hasLedger(instance) ? planScope(scopeObject, instance, context) : [])];
}

export function planFinalizer(scopeObject: ScopeObject): Action[] {
  if (hasFinalizer(scopeObject)) return [];
  return [{ action: 'AddFinalizer', ...about(scopeObject, 'it will have a claim and spend in the database') }];
}

/**
 * The scope object's claim and policy, and the value of a VirtualKey. No action while another object has the alias, or
 * while a charged scope has no claim yet: that of the namespace of a VirtualKey is one of them.
 */
export function planScope(
  scopeObject: ScopeObject,
  instance: InstanceView,
  context: PlanContext,
  { view, value, why: whyValue }: { readonly view?: KeyView; readonly value?: ScopeValue; readonly why?: string } = {},
): Action[] {
  const { state, claim } = claimOf(scopeObject, instance);
  if (state === 'taken' || (state === 'free' && hasOlderRival(scopeObject, context))) return [];
  const isKey = scopeObject.kind === 'VirtualKey';
  if (isKey && namespaceClaim(instance, scopeObject.metadata.namespace) === undefined) return [];
  const proof = state === 'ours' ? undefined : proofOf(scopeObject, claim, instance, view);
  if (state === 'orphaned' && proof === undefined) return [];
  // Whole seconds, because people read the dates that are counted from this time.
  const anchor = Math.floor(instance.databaseNow / 1000) * 1000;
  const policy = policyOf(scopeObject, claim ?? { scopeId: '', anchor }, context);
  if (policy === undefined) return [];
  const digest = digestOf(policy, context.hash);
  if (state === 'ours' && value === undefined && sameJson(digest, claim.policy)) return [];
  const { kind, alias } = aliasOf(scopeObject);
  const why = {
    free: `the ${kind} alias "${alias}" is free`,
    orphaned: `it adopts the claim of the alias "${alias}", with spend and values: the object that had it is gone`,
    ours: whyValue ?? `its ${differingMembers(digest, claim?.policy ?? {}).join(', ')} changed`,
  }[state];
  const { generation } = scopeObject.metadata;
  const write = { policy, generation, isNew: state === 'free', ...proof, value };
  return [{ action: 'PutScope', ...aboutClaim(scopeObject, why), ...write }];
}

/**
 * The proof that an orphaned claim is the scope object's. If no claim has the alias: the possible proof that a retained
 * claim of another instance, or the claim of a User's or Team's previous alias, is the scope object's.
 */
function proofOf(
  scopeObject: ScopeObject,
  claim: Claim | undefined,
  instance: InstanceView,
  view: KeyView | undefined,
): Proof | undefined {
  if (claim === undefined && scopeObject.kind !== 'VirtualKey') return { proof: SAME_OBJECT };
  const secret = presentSecret(view?.secret);
  const proof = secret?.hash === undefined ? undefined : { proof: secret.hash, formerHolders: holdersOf(secret) };
  if (claim === undefined) return secret !== undefined && isLabelled(secret) ? proof : undefined;
  if (view !== undefined) return isProven(view, claim) ? proof : undefined;
  const isSamePlace = pathOf(claim.holder) === pathOf(scopeObject.metadata);
  return isSamePlace && canHoldersStillArrive(instance) ? { proof: SAME_PLACE } : undefined;
}

type Proof = Pick<ActionOf<'PutScope'>, 'proof' | 'formerHolders'>;

/**
 * Whether the VirtualKey's own Secret has one of the claim's values and, in another namespace than the claim's holder,
 * the holder's uid. Clients have the value too, and may have a namespace. The uid of a previous holder is enough if the
 * claim is not retained: the cluster was restored to before a move, and the holder's object is gone.
 */
function isProven(view: KeyView, claim: Claim): boolean {
  const { holder, previousHolders = [] } = claim;
  const secret = presentSecret(view.secret);
  if (secret === undefined || !hasValueOf(secret, view, claim)) return false;
  if (holder.namespace === view.object.metadata.namespace) return true;
  const known = retainedSecret(claim) === undefined ? [holder.uid, ...previousHolders] : [holder.uid];
  return holdersOf(secret).some((uid) => known.includes(uid));
}

/**
 * The VirtualKey's own Secret, if it has one of the claim's values and does not prove that the claim may be adopted.
 */
export function unprovenSecret(view: KeyView, claim: Claim): PresentSecret | undefined {
  const secret = presentSecret(view.secret);
  return secret !== undefined && hasValueOf(secret, view, claim) && !isProven(view, claim) ? secret : undefined;
}

/** Whether the Secret is the VirtualKey's own and has one of the claim's values. */
function hasValueOf(secret: PresentSecret, { object }: KeyView, claim: Claim): boolean {
  const live = hashesOf(claim);
  return secret.hash !== undefined && live.includes(secret.hash) && isOurs(secret, object, live);
}

/** Whether an older scope object could claim the alias now. */
function hasOlderRival(scopeObject: ScopeObject, { oldestClaimant }: PlanContext): boolean {
  const oldest = oldestClaimant(instancePathOf(scopeObject), aliasOf(scopeObject).key);
  return oldest !== undefined && oldest.metadata.uid !== scopeObject.metadata.uid && isOlder(oldest, scopeObject);
}

/**
 * Retires claims whose object is gone, or now claims another alias or instance. If not all objects are loaded, only those
 * that another scope object wants. If objects may still arrive, only those whose object has arrived and proves nothing:
 * the alias alone must not take a claim from an object that is on its way.
 */
export function planOrphanedClaims(
  path: string,
  instance: InstanceView,
  { world, claimantsOf, oldestClaimant }: PlanContext,
): Action[] {
  const { object, database, isComplete, claims, orphanedClaims } = instance;
  if (orphanedClaims.size === 0 || !database.ok || object.spec.paused) return [];
  return [...claims].flatMap(([key, claim]): Action[] => {
    const orphan = orphanedClaims.get(claim.scopeId);
    if (orphan === undefined) return [];
    const scopeObjects = claimantsOf(path, key);
    const isAdopted = scopeObjects.some((scopeObject) => {
      const view = scopeObject.kind === 'VirtualKey' ? world.keys.get(pathOf(scopeObject.metadata)) : undefined;
      return proofOf(scopeObject, claim, instance, view) !== undefined;
    });
    if (isAdopted) return [];
    const { observed, retention } = orphan;
    if (retention !== undefined) return planRetainedAgain(path, claim, retention);
    const { holder, kind: claimKind, alias, scopeId } = claim;
    if (claimKind === 'namespace') return [];
    const hasArrived = scopeObjects.some(({ metadata }) => pathOf(metadata) === pathOf(holder));
    if (canHoldersStillArrive(instance) ? !hasArrived : scopeObjects.length === 0 && !isComplete) return [];
    const { namespace, name } = holder;
    const on = { kind: KIND_OF[claimKind], namespace, name, instance: path, claimKind, alias } as const;
    const why = `its object is gone, or no longer claims the ${claimKind} alias "${alias}"`;
    const successor = claimKind === 'key' && claim.values.length > 0 ? oldestClaimant(path, key) : undefined;
    const message =
      `VirtualKey "${namespace}/${name}", which had the alias "${alias}", is gone, and the Secret of this VirtualKey does not have its key value, or lacks its annotations in another namespace: ` +
      'the value has ended, and this VirtualKey has no spend. To keep both at the next restore, restore the Secret first, with its labels and annotations';
    const notRestored = { reason: 'KeyNotRestored', message, once: `KeyNotRestored/${scopeId}` } as const;
    return [
      ...(successor ? [event(successor, notRestored)] : []),
      { action: 'RetireScope', ...on, why, scopeId, observed },
    ];
  });
}

/**
 * Retains a claim whose Secret shows that its VirtualKey was deleted with `Retain`: the database was away at that time,
 * or was restored from an older backup.
 */
function planRetainedAgain(
  path: string,
  claim: Claim,
  { secret, isBlocked }: NonNullable<OrphanedClaim['retention']>,
): Action[] {
  const { holder, kind: claimKind, alias, scopeId, anchor, policy } = claim;
  if (retainedSecret(claim) === secret || claimKind === 'namespace') return [];
  const { uid, namespace, name } = holder;
  const on = { kind: KIND_OF[claimKind], namespace, name, instance: path, claimKind, alias } as const;
  const blocked = isBlocked || policy?.blocked === true;
  const write = { policy: { scopeId, anchor, blocked, retained: secret }, generation: 0, isNew: false, holder: uid };
  return [{ action: 'PutScope', ...on, why: `Secret "${secret}" shows that it is retained`, ...write }];
}

/**
 * What becomes of key values for which no VirtualKey is planned: the VirtualKey is retained, malformed, deferred or not
 * loaded. A namespace whose labels are not known counts as allowed.
 */
export function planUnplannedKeys(path: string, instance: InstanceView, { world }: PlanContext): Action[] {
  const { object, database, claims } = instance;
  if (!database.ok || object.spec.paused || isDeleted(object)) return [];
  const isExpelled = createIsExpelled(instance, world);
  return [...claims.values()].flatMap((claim): Action[] => {
    const { holder, kind: claimKind, alias, scopeId, anchor, policy } = claim;
    const { uid, namespace, name } = holder;
    const retained = retainedSecret(claim);
    const isDisabled = retained === undefined && world.disabled.has(uid);
    const why = isExpelled(namespace) ? NAMESPACE_NOT_ALLOWED : isDisabled ? DISABLED : undefined;
    const isOwnerless = claim.isOwnerGone === true && policy?.blocked !== true;
    if (claimKind !== 'key' || (why === undefined && !isOwnerless)) return [];
    const on = { kind: KIND_OF[claimKind], namespace, name, instance: path, claimKind, alias } as const;
    if (why === undefined) {
      if (retained === undefined) return [];
      const write = { policy: { scopeId, anchor, blocked: true, retained }, generation: 0, isNew: false, holder: uid };
      return [{ action: 'PutScope', ...on, why: OWNERLESS, ...write }];
    }
    const hashes = hashesOf(claim);
    // Nothing is planned for a deferred VirtualKey, however long others change before it.
    const view = world.keys.get(pathOf(holder));
    const isDeferred = view !== undefined && world.deferred.has(idOf('VirtualKey', view.object.metadata));
    const isPlanned = retained === undefined && view?.object.metadata.uid === uid && !isDeferred;
    if (isPlanned || hashes.length === 0) return [];
    const observed = observedHolder(claim);
    return [{ action: 'EndValues', ...on, why, scopeId, hashes, overlap: undefined, observed }];
  });
}

/** Blocks claims whose object is blocked, if nothing else is planned for it in this run. */
export function planBlocks(path: string, instance: InstanceView, { world }: PlanContext): Action[] {
  const { object, database, claims } = instance;
  if (!database.ok || object.spec.paused || isDeleted(object)) return [];
  return [...claims.values()].flatMap((claim): Action[] => {
    const { holder, kind: claimKind, alias, scopeId, anchor, policy } = claim;
    const generation = world.blocked.get(holder.uid);
    const isDone = policy === undefined || policy.blocked === true || retainedSecret(claim) !== undefined;
    if (generation === undefined || isDone || claimKind === 'namespace') return [];
    const { uid, namespace, name } = holder;
    const on = { kind: KIND_OF[claimKind], namespace, name, instance: path, claimKind, alias } as const;
    const write = { policy: { scopeId, anchor, blocked: true }, generation, isNew: false, holder: uid };
    return [{ action: 'PutScope', ...on, why: BLOCKED, ...write }];
  });
}

const DISABLED = 'its object is malformed, or in deletion: nothing can be planned for it';
const BLOCKED = 'its object is blocked';
const OWNERLESS = 'a User or Team that it is charged to is gone: it is blocked until a VirtualKey adopts it';

/** Answers once for each namespace: an instance may have 100,000 claims. */
function createIsExpelled(instance: InstanceView, world: World) {
  const known = new Map<string, boolean>();
  return (name: string): boolean => {
    const answer = known.get(name) ?? isNamespaceAllowed(instance, name, world) === false;
    known.set(name, answer);
    return answer;
  };
}

/**
 * The claim of a scope, or before there is one its creation time. Ids of new scopes are created when they are written.
 */
type ScopeState = Pick<Claim, 'scopeId' | 'anchor' | 'policy'>;

/** The policy to write. Undefined while a User or Team that is charged with the VirtualKey has no claim yet. */
function policyOf(
  scopeObject: ScopeObject,
  scope: ScopeState,
  context: PlanContext,
): ScopePolicy | KeyPolicy | undefined {
  const { scopeId, anchor } = scope;
  const { models } = scopeObject.spec;
  const blocked = isOwnBlocked(scopeObject);
  const common = {
    scopeId,
    name: aliasOf(scopeObject).alias,
    models,
    budget: renewedBudget(budgetOf(scopeObject), scope.policy?.budget, editOf(scopeObject, scope)),
    limits: policyLimitsOf(scopeObject),
    anchor,
  };
  // Names for people, in the log of requests and in reports of spend.
  if (scopeObject.kind === 'Team') return { ...common, kind: 'team', blocked };
  if (scopeObject.kind === 'User') return { ...common, alias: scopeObject.spec.userAlias, kind: 'user', blocked };
  const { charged, unchargeable, isWaiting } = context.chargedScopes(scopeObject);
  if (isWaiting) return undefined;
  const { tags, metadata } = scopeObject.spec;
  return {
    ...common,
    tags,
    metadata,
    kind: 'key',
    blocked: blockersOf(scopeObject, context).length > 0,
    missingOwnerReason: blocked ? undefined : unchargeable[0]?.rule,
    expiresAt: expiryOf(scopeObject, scope),
    object: { namespace: scopeObject.metadata.namespace, name: scopeObject.metadata.name },
    secretName: scopeObject.spec.secretTemplate?.name,
    chargedScopeIds: charged.map(({ claim }) => claim.scopeId),
    furtherBudgets: furtherBudgetsOf(scopeObject, scope),
  };
}

/**
 * The causes for which the policy of a VirtualKey is blocked, so that the gateway refuses the key. A VirtualKey whose
 * User or Team cannot be charged would spend without charging that scope.
 */
export const blockersOf = (
  key: VirtualKey,
  context: PlanContext,
): ReadonlyArray<Finding<MissingOwnerReason> | Problem<OwnBlockingReason>> => [
  ...context.chargedScopes(key).unchargeable,
  ...ownBlockersOf(key),
];

const editOf = ({ metadata: { generation } }: Pick<ScopeObject, 'metadata'>, { policy }: ScopeState) => ({
  isNew: policy === undefined,
  generation,
});

/** Further budgets: of other windows, the shortest text first, and of single models by name. */
function furtherBudgetsOf(key: VirtualKey, scope: ScopeState): ReadonlyArray<FurtherBudget> | undefined {
  const { budgets = [], modelMaxBudget = {} } = key.spec;
  const windows = budgets.map((one) => ({ ...one, model: undefined }));
  const models = Object.entries(modelMaxBudget).map(([model, one]) => ({ ...one, model }));
  if (windows.length + models.length === 0) return undefined;
  const known = budgetedScopes(scope).filter(({ scopeId }) => scopeId !== scope.scopeId);
  const alignment = alignmentOf(key);
  return [...windows.sort(byField('budgetDuration')), ...models.sort(byField('model'))].map(
    ({ model, maxBudget, budgetDuration: duration }) => {
      const before = known.find(
        (one) => one.model === model && (model !== undefined || one.budget.duration === duration),
      );
      const limit = String(parseMoney(maxBudget));
      const renewed = renewedBudget({ limit, duration, alignment }, before?.budget, editOf(key, scope));
      const sinceGeneration = renewed?.sinceGeneration;
      const counted = sinceGeneration === undefined ? { limit, duration } : { limit, duration, sinceGeneration };
      return { scopeId: before?.scopeId ?? '', ...(model === undefined ? {} : { model }), ...counted };
    },
  );
}

const byField =
  <Field extends string>(field: Field) =>
  (one: Readonly<Record<Field, string>>, other: Readonly<Record<Field, string>>): number =>
    one[field] < other[field] ? -1 : 1;

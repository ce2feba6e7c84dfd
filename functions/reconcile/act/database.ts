// Writes to an instance's database: the instance itself, claims with their policies, and values.

import { reasonOf } from '#core/failure/error-text.ts';
import { furtherScopeId } from '#core/keys/further-budgets.ts';
import { toKeyValue } from '#core/keys/key-value.ts';
import { RESOURCES } from '#core/ports/cluster.ts';
import type { ScopeId } from '#core/ports/policy.ts';
import { type Adoption, MAX_RETAINED, type PolicyWrite, type Registry } from '#core/ports/registry.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { ADOPT_LEDGER_ANNOTATION, RETAINED_LABEL } from '#crds/names/group.ts';
import { type ActionOf, identify, type Outcome } from '../action.ts';
import { budgetedScopes, windowOf } from '../key/budget.ts';
import { clusterOf } from '../memory.ts';
import { claimKey, hasFinalizer, type Path, type Problem, pathOf, presentSecret } from '../world.ts';
import {
  type ActContext,
  conflictOutcome,
  doneOutcome,
  failedOutcome,
  type Handlers,
  isAsPlanned,
  linkOf,
  type ObjectReference,
  objectOf,
} from './context.ts';
import { recordEvent } from './objects.ts';

const KEY_BYTES = 32;

export const databaseHandlers = {
  /** Reads the object again first: opening would bring back the row of a deleted instance. */
  OpenInstance: async (action, context) => {
    const { namespace, name, ledger } = action;
    const { uid, registry } = linkOf(action, context);
    if (!(await isAsPlanned(action, context))) return conflictOutcome;
    const { from, to } = await registry.migrate();
    if (from !== to) context.deps.log.info('a database was migrated', { instance: pathOf(action), from, to });
    const cluster = await clusterOf(context);
    const isLost = ledger === undefined && !(await registry.instance(uid)).isOpen && wasOpen(action, context);
    const row = { uid, namespace, name, ...(cluster === undefined ? {} : { cluster }) };
    const owner = ledger?.isMissing === true ? await ownerOf(ledger.uid, registry, context) : undefined;
    const adoption = owner ?? (await registry.openInstance(row, ledger));
    if (isLost) await reportLoss(action, context);
    return adoption.ok ? doneOutcome() : { ended: 'failed', problem: toAdoptionProblem(adoption, ledger?.uid ?? '') };
  },
  CloseInstance: async (action, context) => {
    const { uid, registry } = linkOf(action, context);
    await registry.closeInstance(uid);
    await clearStores(uid, pathOf(action), context);
    return doneOutcome();
  },
  CloseOrphan: async (action, context) => {
    await linkOf(action, context).registry.closeInstance(action.uid);
    return doneOutcome();
  },
  PutScope: async (action, context) => {
    const { uid: instanceUid, registry } = linkOf(action, context);
    const { claimKind: kind, alias, namespace, name, proof, formerHolders, isNew } = action;
    const object = objectOf(action, context);
    // A list is older than this call: an object that was deleted meanwhile must not come back as a claim. An object
    // that has just got its finalizer in this run exists, and is not removed without the operator.
    const needsNoSecondRead = !isNew || object === undefined || !hasFinalizer(object);
    const source = sourceOf(action);
    if (!needsNoSecondRead && !(await isAsPlanned(source, context))) return conflictOutcome;
    const holder = { uid: action.holder ?? object?.metadata.uid ?? '', namespace, name };
    const write = toWrite(action, context);
    const { scopeId } = write.policy;
    const value = action.value && { ...action.value, hash: action.value.hash ?? createValue(action, scopeId, context) };
    const given = {
      ...(proof === undefined ? {} : { proof }),
      ...(formerHolders === undefined ? {} : { formerHolders }),
      ...(value === undefined ? {} : { value }),
    };
    const scope = { instanceUid, kind, alias, holder, ...write, ...given };
    const first = await registry.putScope(scope);
    // The list was outdated, or a backup of the cluster was restored: then the object has this generation now.
    const isRestored = typeof first === 'object' && (action.generation === 0 || (await isAsPlanned(source, context)));
    const outcome = isRestored ? await registry.putScope({ ...scope, overwrites: first.later }) : first;
    if (outcome === 'too many') return tooManyOutcome(action);
    // In the first attempt, the scope that has the value may be one that this run retires.
    const isFirst = !context.world.attempts.has(identify(action));
    if (outcome !== 'value taken' || isFirst) return outcome === 'written' ? doneOutcome() : conflictOutcome;
    const secret = presentSecret(context.world.keys.get(pathOf(action))?.secret)?.name;
    const message = `Secret "${secret}" has the value of another VirtualKey: delete it, or write another value into it`;
    return failedOutcome(message, 'SecretConflict');
  },
  RetireScope: async (action, context) => {
    const isRetired = await linkOf(action, context).registry.retire([action.scopeId], action.observed);
    return isRetired ? doneOutcome() : conflictOutcome;
  },
  EndValues: async (action, context) => {
    const { scopeId, hashes, overlap, observed } = action;
    const { registry } = linkOf(action, context);
    const planned = presentSecret(context.world.keys.get(pathOf(action))?.secret);
    // The Secret was observed with a value that ends now: this run has just published another value in its place.
    const isReplaced = planned?.hash !== undefined && hashes.includes(planned.hash);
    // A slow run must not end the value that a faster run has published: no Secret has the slow run's value any more.
    if (overlap !== undefined && !isReplaced && !(await isStillPublished(action, context))) return conflictOutcome;
    const isEnded = await registry.endValues(scopeId, hashes, overlap, observed);
    return isEnded ? doneOutcome() : conflictOutcome;
  },
} satisfies Handlers;

/** The object of whose spec the policy is made: that of a namespace is made of the instance. */
function sourceOf({ kind, namespace, name, instance }: ActionOf<'PutScope'>): ObjectReference {
  if (kind !== 'Namespace') return { kind, namespace, name };
  const [ofInstance = '', instanceName = ''] = instance.split('/');
  return { kind: 'GatewayInstance', namespace: ofInstance, name: instanceName };
}

/** The key is not retained, and stays as it is: its object waits in deletion, where quotas count it. */
function tooManyOutcome({ namespace, instance }: ActionOf<'PutScope'>): Outcome {
  const message =
    `deletion waits: namespace ${namespace} has ${MAX_RETAINED} retained keys on instance ${instance}, and may not have more. The key value continues working. ` +
    `Delete Secrets of retained keys that nobody needs (list them: kubectl get secrets -n ${namespace} -l ${RETAINED_LABEL}=true), or set spec.deletionPolicy to Delete`;
  return { ended: 'skipped', problem: { reason: 'TooManyRetained', message } };
}

/** Whether the instance was open before, by its status, which outlives the database. */
function wasOpen(action: ActionOf<'OpenInstance'>, { world }: ActContext): boolean {
  const { status } = world.instances.get(pathOf(action))?.object ?? {};
  return status?.conditions?.some(({ type, status: is }) => type === 'DatabaseReady' && is === 'True') === true;
}

/** Reports a ledger that begins empty. It is found only here: a database without our schema does not show its rows. */
async function reportLoss({ kind, namespace, name }: ActionOf<'OpenInstance'>, context: ActContext): Promise<void> {
  const view = context.world.instances.get(pathOf({ namespace, name }));
  if (view === undefined || !view.database.ok) return;
  const where = view.database.message;
  const message = `${where} has no data of this instance, which was open in its database before: its ledger begins empty, and all spend begins at 0. If data was lost, restore a backup`;
  context.deps.log.warn('the ledger of an instance begins empty', { instance: pathOf({ namespace, name }), where });
  const event = { type: 'Warning', reason: 'LedgerEmpty', message, once: `LedgerEmpty/${where}` } as const;
  await recordEvent({ kind, namespace, name, ...event }, context);
}

/** The refusal of a ledger that the annotation calls lost, although its instance is in this cluster. */
async function ownerOf(
  uid: string,
  registry: Pick<Registry, 'instance'>,
  { deps }: ActContext,
): Promise<Refusal | undefined> {
  const { place } = await registry.instance(uid);
  const found = place && (await deps.cluster.get(gatewayInstances, place.namespace, place.name));
  return place && found?.metadata.uid === uid ? { ok: false, why: 'here', at: pathOf(place) } : undefined;
}

type Refusal =
  | Extract<Adoption, { readonly ok: false }>
  | { readonly ok: false; readonly why: 'here'; readonly at: Path };

/** Why a new instance is not opened: with an empty ledger every budget would be full again. */
function toAdoptionProblem(adoption: Refusal, ledger: string): Problem<'LedgerNotAdopted'> {
  const why = {
    same: `is the uid of this instance: write the uid of the previous instance`,
    absent: `is the uid of no instance in this database: correct the uid, or spec.databaseSecretRef`,
    open: `is an instance that is not closed: delete that instance first; if its whole cluster is gone, write "${ledger} lost"`,
    adopted: `is an instance whose ledger the instance ${'successor' in adoption ? adoption.successor : ''} continues already: if that instance is gone too, write its uid`,
    here: `is not lost: it is the instance ${'at' in adoption ? adoption.at : ''} of this cluster. Delete that instance first, and write the uid alone`,
  }[adoption.why];
  const message = `annotation ${ADOPT_LEDGER_ANNOTATION}: ${JSON.stringify(ledger)} ${why}; or remove the annotation for a new ledger`;
  return { reason: 'LedgerNotAdopted', message };
}

/**
 * Clears the counter store and the snapshot store of a closed instance, whose spend is in PostgreSQL. If the counter
 * store cannot be reached, a few keys stay in it that nothing reads.
 */
async function clearStores(uid: string, path: Path, { deps, memory }: ActContext): Promise<void> {
  const store = memory.instances.get(uid)?.store;
  memory.instances.delete(uid);
  try {
    if (store !== undefined) await deps.backends.clearStore(uid, store);
    await deps.snapshots?.delete(path);
  } catch (error) {
    deps.log.warn('cannot clear the stores of a deleted instance', { instanceUid: uid, why: reasonOf(error) });
  }
}

/**
 * The policy with the ids of new scopes, and with the windows that are counted differently than before: their sums are
 * computed again from the ledger rows inside them (LEDGER 5).
 */
function toWrite(action: ActionOf<'PutScope'>, { deps, world, now }: ActContext): PolicyWrite {
  const { instance, claimKind, alias, generation } = action;
  const claim = world.instances.get(instance)?.claims.get(claimKey(claimKind, alias));
  const scopeId = action.policy.scopeId || deps.ids.next();
  const own = 'furtherBudgets' in action.policy ? action.policy.furtherBudgets : undefined;
  const furtherBudgets = own?.map((one) => ({
    ...one,
    scopeId: one.scopeId || furtherScopeId(deps.hash, scopeId, one),
  }));
  const policy = { ...action.policy, scopeId, ...(furtherBudgets === undefined ? {} : { furtherBudgets }) };
  if (claim?.policy === undefined || policy.kind === undefined) return { policy, generation };
  const before = new Map(budgetedScopes(claim).map((one) => [one.scopeId, one.budget]));
  const recounts = budgetedScopes({ scopeId, policy }).flatMap(({ scopeId: id, model, budget }) => {
    const old = before.get(id);
    if (old?.duration === budget.duration && old.alignment === budget.alignment) return [];
    const window = windowOf(budget, policy.anchor, now);
    // Another window of the VirtualKey counts what it has spent in that window.
    return [{ scopeId: id, window, ...(model === undefined && id !== scopeId ? { from: scopeId } : {}) }];
  });
  return { policy, generation, ...(recounts.length > 0 ? { recounts } : {}) };
}

/** A new value. Only its hash leaves this process before its Secret does. */
function createValue(
  at: Pick<ObjectReference, 'namespace' | 'name'>,
  scopeId: ScopeId,
  { deps, newValues }: ActContext,
): string {
  const value = toKeyValue(deps.random(KEY_BYTES));
  newValues.set(pathOf(at), { value, scopeId });
  return deps.hash(value);
}

/** Whether the VirtualKey's Secret is the one that was planned for. */
async function isStillPublished(at: ObjectReference, { deps, world }: ActContext): Promise<boolean> {
  const planned = presentSecret(world.keys.get(pathOf(at))?.secret);
  if (planned === undefined) return true;
  const found = await deps.cluster.get(RESOURCES.secrets, at.namespace, planned.name);
  return found?.metadata.resourceVersion === planned.resourceVersion;
}

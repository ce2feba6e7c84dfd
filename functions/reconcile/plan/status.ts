// What should the status of each object say, and what of that is not said yet? Status describes what was observed (DESIGN 6, law 2).
import type { Judgement } from '#core/conditions.ts';
import { toText } from '#core/finding.ts';
import type { GatewayInstanceStatus } from '#crds/gateway-instance.ts';
import type { Team, TeamStatus } from '#crds/team.ts';
import type { User, UserStatus } from '#crds/user.ts';
import type { Action } from '../action.ts';
import {
  hashesOf,
  type InstanceView,
  idOf,
  type Malformed,
  type OwnObject,
  type Path,
  pathOf,
  SNAPSHOTS_LEFT,
} from '../world.ts';
import { heldUpBy, isDeleted, toWaiting } from './deletion.ts';
import { type Guarded, toGuardedMessage } from './guard.ts';
import { superfluous } from './instance.ts';
import { whyNotScope } from './judge-member.ts';
import { judgeModels } from './judge-models.ts';
import { secretStatus } from './key-status.ts';
import { judgeLedger } from './ledger.ts';
import type { Outlook } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';
import { isPaused, PAUSED, planPausedStatus, planResumed } from './paused.ts';
import { spendOf, spendStatusOf, toSpendStatus } from './spend.ts';
import { observed, optional, toReady, writeStatus } from './write-status.ts';

/** `inactive`: the keys that do not work. */
export function planInstanceStatus(
  view: InstanceView,
  outlook: Outlook,
  { guarded, inactive }: { readonly guarded: ReadonlyArray<Guarded>; readonly inactive: ReadonlySet<Path> },
): Action[] {
  const { object, snapshot, complete } = view;
  if (isPaused(object)) return planPausedStatus(object, outlook);
  const judged = outlook.judge(view);
  const conditions = isDeleted(object)
    ? [toDeleting(view, outlook)]
    : [...judged.conditions, ...judgeLedger(view), ...judgeLeft(view, outlook), ...judgeGuarded(view, guarded)];
  const before = object.status;
  // What is served, not what is published: while a rollout is under way that is the one before.
  const hash = snapshot.published && judged.workload.isCurrent ? snapshot.hash : before?.snapshotHash;
  const after: GatewayInstanceStatus = {
    ...observed(object, conditions, outlook, complete ? [...PASSING, GUARDED] : PASSING),
    ...optional('url', judged.workload.url),
    models: judged.models,
    ...optional('keys', complete ? countKeys(view, outlook, inactive) : before?.keys),
    ...optional('snapshotHash', hash),
    ...optional('workloadType', judged.workload.type),
  };
  return [...writeStatus(object, after, outlook), ...planResumed(object)];
}

/** Conditions that are there only while there is something to say. Only a run that sees all members sees what is guarded. */
const PASSING = ['LedgerAdopted', SNAPSHOTS_LEFT, PAUSED];
const GUARDED = 'DeletionsGuarded';
/** The reason of that condition, and of its event. */
export const TOO_MANY_DELETIONS = 'TooManyDeletions';

/** What the run wanted to delete and still sees. While it is told, the next run looks for them again. */
function judgeLeft(view: InstanceView, outlook: Outlook): ReadonlyArray<Judgement> {
  const left = superfluous(view, outlook).map(({ name }) => `"${name}"`);
  if (left.length === 0) return [];
  const failure = outlook.world.failures.get(idOf(view.object.kind, view.object.metadata)) ?? 'not done yet';
  const message = `nothing needs ConfigMap ${left.join(', ')} any more, and it is still there: ${failure}`;
  return [{ type: SNAPSHOTS_LEFT, status: 'True', reason: 'SnapshotNotDeleted', message }];
}

function judgeGuarded({ object, complete }: InstanceView, all: ReadonlyArray<Guarded>): ReadonlyArray<Judgement> {
  const guarded = all.filter(({ instance }) => complete && instance === pathOf(object.metadata));
  if (guarded.length === 0) return [];
  const message = guarded.map(toGuardedMessage).join('; ');
  return [{ type: GUARDED, status: 'True', reason: TOO_MANY_DELETIONS, message }];
}

const toDeleting = (view: InstanceView, { world }: Outlook): Judgement => {
  const message = toWaiting(view.object, heldUpBy(view, world));
  return { type: 'Ready', status: 'False', reason: 'Deleting', message };
};

export function planScopeStatus(member: User | Team, outlook: Outlook): Action[] {
  const standing = outlook.standing(member);
  if (standing.at === 'paused') return [];
  const problem = whyNotScope(member, outlook);
  const claim = standing.at === 'admitted' ? outlook.claim(member, standing.instance) : undefined;
  const spend =
    standing.at === 'admitted' && claim?.state === 'ours'
      ? spendOf(member, claim.claim, standing.instance, outlook.now)
      : undefined;
  const after: UserStatus | TeamStatus = {
    ...observed(member, [toReady(problem), judgeModels(member, outlook)], outlook),
    ...(claim === undefined ? spendStatusOf(member) : toSpendStatus(member, spend)),
    ...(member.kind === 'User' ? keyRefs(member, outlook) : {}),
  };
  return writeStatus(member, after, outlook);
}

/** Of these nothing is known while a spec cannot be read. */
const OURS: ReadonlySet<string> = new Set(['DatabaseReady', 'StoreReady', 'WorkloadReady', 'ModelsReady']);

/** An object whose spec an older CRD let in: nothing can be done for it but to say so, and to let it go. */
export function planMalformedStatus(malformed: Malformed, outlook: Outlook): Action[] {
  const object = { ...malformed, kind: malformed.kind } as Pick<OwnObject, 'kind' | 'metadata' | 'status'>;
  const problem = { reason: 'InvalidSpec', message: toText(malformed.mistakes) };
  const stale = (object.status?.conditions ?? []).filter(({ type }) => OURS.has(type));
  const unknown = stale.map(({ type }): Judgement => ({ type, status: 'Unknown', ...problem }));
  const conditions = observed(object, [toReady(problem), ...unknown], outlook);
  const after = { ...object.status, ...conditions, ...(object.kind === 'VirtualKey' ? { isActive: false } : {}) };
  return writeStatus(object, after, outlook);
}

function keyRefs(user: User, outlook: Outlook): Pick<UserStatus, 'keyRef' | 'keySecretRef'> {
  const { key, owned } = ownedKeyOf(user, outlook);
  if (key === undefined || !owned || isDeleted(key)) return {};
  const view = outlook.world.keys.get(pathOf(key.metadata));
  const standing = outlook.standing(key);
  const claim = standing.at === 'admitted' ? outlook.claim(key, standing.instance) : undefined;
  const live = claim?.state === 'ours' ? hashesOf(claim.claim) : undefined;
  const { keySecretRef } = view === undefined ? {} : secretStatus(view, live, outlook);
  return { keyRef: { name: key.metadata.name }, ...optional('keySecretRef', keySecretRef) };
}

function countKeys(
  { object: { metadata } }: InstanceView,
  { world }: Outlook,
  inactive: ReadonlySet<Path>,
): NonNullable<GatewayInstanceStatus['keys']> {
  let [total, active] = [0, 0];
  for (const [path, { object }] of world.keys) {
    const { namespace, name } = object.spec.connectionRef.instanceRef;
    if (name !== metadata.name || namespace !== metadata.namespace || isDeleted(object)) continue;
    total += 1;
    if (!inactive.has(path)) active += 1;
  }
  return { total, active };
}

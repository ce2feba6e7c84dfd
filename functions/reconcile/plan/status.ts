// What should the status of each object say, and what of that is not said yet? Status describes what was observed (DESIGN 6, law 2).
import { type Judgement, toConditions, toTimestamp } from '#core/conditions.ts';
import { formatMoney } from '#core/money.ts';
import type { GatewayInstanceStatus } from '#crds/gateway-instance.ts';
import type { Team, TeamStatus } from '#crds/team.ts';
import type { User, UserStatus } from '#crds/user.ts';
import type { VirtualKeyStatus } from '#crds/virtual-key.ts';
import type { Action, StatusPatch } from '../action.ts';
import {
  type InstanceView,
  instancePathOf,
  type KeyView,
  type Malformed,
  type OwnObject,
  type Problem,
  pathOf,
} from '../world.ts';
import { about } from './about.ts';
import { isDeleted } from './deletion.ts';
import { planEvents } from './events.ts';
import { spendOf, whyNotKey, whyNotScope, whyUnserved } from './judge-member.ts';
import { displayOf, isOurs, present } from './key-secret.ts';
import type { Outlook } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';
import { expiryOf, sameJson } from './policies.ts';

/** Written nowhere in a plan: the values themselves are only known to act. */
type KeyStatus = Omit<VirtualKeyStatus, 'keyValue'> & { readonly keyValue?: string };

export function planInstanceStatus(view: InstanceView, outlook: Outlook): Action[] {
  const { object, snapshot, complete } = view;
  if (object.spec.paused && !isDeleted(object)) return [];
  const judged = outlook.judge(view);
  const conditions: ReadonlyArray<Judgement> = isDeleted(object)
    ? [
        {
          type: 'Ready',
          status: 'False',
          reason: 'Deleting',
          message: view.database.ok ? 'it is being deleted' : view.database.message,
        },
      ]
    : judged.conditions;
  const before = object.status;
  const hash = snapshot.published ? snapshot.hash : before?.snapshotHash;
  const after: GatewayInstanceStatus = {
    ...observed(object, conditions, outlook),
    ...optional('url', judged.workload.url),
    models: judged.models,
    ...optional('keys', complete ? countKeys(view, outlook) : before?.keys),
    ...optional('snapshotHash', hash),
    ...optional('workloadType', judged.workload.type),
  };
  return write(object, after, outlook);
}

export function planKeyStatus(view: KeyView, outlook: Outlook): Action[] {
  const key = view.object;
  const standing = outlook.standing(key);
  if (standing.at === 'paused') return [];
  const problem = whyNotKey(view, outlook);
  const before: VirtualKeyStatus = key.status ?? {};
  const claim = standing.at === 'admitted' ? outlook.claim(key, standing.instance) : undefined;
  const mine = claim?.state === 'ours' ? claim.claim : undefined;
  const spend =
    standing.at === 'admitted' && mine !== undefined ? spendOf(key, mine, standing.instance, outlook.now) : undefined;
  const expiry = mine === undefined ? undefined : expiryOf(key, mine);
  const unserved =
    standing.at === 'admitted' || standing.at === 'unreachable'
      ? whyUnserved(view, standing.judgement.served)
      : undefined;
  const lost = claim !== undefined && mine === undefined;
  const money =
    spend === undefined
      ? lost
        ? {}
        : { ...optional('currentSpend', before.currentSpend), ...optional('budgetResetDate', before.budgetResetDate) }
      : { currentSpend: formatMoney(spend.spent), budgetResetDate: toTimestamp(spend.resetsAt) };
  const after: KeyStatus = {
    ...observed(key, [toReady(problem), toModelsReady(unserved?.some)], outlook),
    ...secretStatus(
      view,
      mine?.values.map(({ hash }) => hash),
      outlook,
    ),
    ...money,
    isActive: problem === undefined,
    ...optional(
      'expiryDate',
      expiry === undefined ? (mine === undefined && !lost ? before.expiryDate : undefined) : toTimestamp(expiry),
    ),
    ...optional('lastSyncTime', before.lastSyncTime),
  };
  return write(key, after, outlook, view);
}

export function planScopeStatus(member: User | Team, outlook: Outlook): Action[] {
  const standing = outlook.standing(member);
  if (standing.at === 'paused') return [];
  const problem = whyNotScope(member, outlook);
  const before = member.status;
  const claim = standing.at === 'admitted' ? outlook.claim(member, standing.instance) : undefined;
  const spend =
    standing.at === 'admitted' && claim?.state === 'ours'
      ? spendOf(member, claim.claim, standing.instance, outlook.now)
      : undefined;
  const resets = member.spec.budgetDuration !== undefined;
  const money =
    claim === undefined
      ? { ...optional('currentSpend', before?.currentSpend), ...optional('budgetResetDate', before?.budgetResetDate) }
      : spend === undefined
        ? {}
        : {
            currentSpend: formatMoney(spend.spent),
            ...optional('budgetResetDate', resets ? toTimestamp(spend.resetsAt) : undefined),
          };
  const after: UserStatus | TeamStatus = {
    ...observed(member, [toReady(problem)], outlook),
    ...money,
    ...(member.kind === 'User' ? keyRefs(member, outlook) : {}),
  };
  return write(member, after, outlook);
}

/** An object whose spec an older CRD let in: nothing can be done for it but to say so, and to let it go. */
export function planMalformedStatus(malformed: Malformed, outlook: Outlook): Action[] {
  const object = { ...malformed, kind: malformed.kind } as Pick<OwnObject, 'kind' | 'metadata' | 'status'>;
  const problem = { reason: 'InvalidSpec', message: `${malformed.problem}: correct it` };
  const conditions = observed(object, [toReady(problem)], outlook);
  const after = { ...object.status, ...conditions, ...(object.kind === 'VirtualKey' ? { isActive: false } : {}) };
  return write(object, after, outlook);
}

const toReady = (problem: Problem | undefined): Judgement =>
  problem === undefined
    ? { type: 'Ready', status: 'True', reason: 'Ready', message: 'works' }
    : { type: 'Ready', status: 'False', reason: problem.reason, message: problem.message };

const toModelsReady = (problem: Problem | undefined): Judgement =>
  problem === undefined
    ? { type: 'ModelsReady', status: 'True', reason: 'Ready', message: 'the instance serves all models of the key' }
    : { type: 'ModelsReady', status: 'False', reason: problem.reason, message: problem.message };

function observed(object: Pick<OwnObject, 'metadata' | 'status'>, judged: ReadonlyArray<Judgement>, { now }: Outlook) {
  const { generation } = object.metadata;
  return {
    conditions: toConditions(judged, object.status?.conditions ?? [], { generation, now }),
    observedGeneration: generation,
  };
}

/** A value is shown once it works. While nothing can be known of it, what was shown stays. */
function secretStatus(view: KeyView, live: ReadonlyArray<string> | undefined, outlook: Outlook): KeyStatus {
  const before = view.object.status ?? {};
  const secret = present(view.secret);
  const mode = modeOf(view, outlook);
  const shows = secret?.hash !== undefined && live?.includes(secret.hash) === true && isOurs(secret, view.object, live);
  if (shows && secret?.hash !== undefined) {
    const value = secret.data.get('key') ?? '';
    return { keySecretRef: secret.name, keyID: secret.hash, keyValue: mode === 'Full' ? value : displayOf(value) };
  }
  const { keySecretRef, keyID, keyValue } = before;
  const isLost = live !== undefined && view.secret.state !== 'unread';
  if (isLost) return optional('keyID', keyID);
  const shown = keyValue === undefined || mode === 'Full' ? keyValue : displayOf(keyValue);
  return { ...optional('keySecretRef', keySecretRef), ...optional('keyID', keyID), ...optional('keyValue', shown) };
}

function modeOf(view: KeyView, { world }: Outlook): 'Full' | 'Redacted' {
  return world.instances.get(instancePathOf(view.object))?.object.spec.keyValueInStatus ?? 'Full';
}

function keyRefs(user: User, outlook: Outlook): Pick<UserStatus, 'keyRef' | 'keySecretRef'> {
  const { key, owned } = ownedKeyOf(user, outlook);
  if (key === undefined || !owned || isDeleted(key)) return {};
  const view = outlook.world.keys.get(pathOf(key.metadata));
  const standing = outlook.standing(key);
  const claim = standing.at === 'admitted' ? outlook.claim(key, standing.instance) : undefined;
  const live = claim?.state === 'ours' ? claim.claim.values.map(({ hash }) => hash) : undefined;
  const { keySecretRef } = view === undefined ? {} : secretStatus(view, live, outlook);
  return { keyRef: { name: key.metadata.name }, ...optional('keySecretRef', keySecretRef) };
}

function countKeys(view: InstanceView, outlook: Outlook): NonNullable<GatewayInstanceStatus['keys']> {
  const path = pathOf(view.object.metadata);
  const keys = [...outlook.world.keys.values()].filter(
    ({ object }) => instancePathOf(object) === path && !isDeleted(object),
  );
  return { total: keys.length, active: keys.filter((key) => whyNotKey(key, outlook) === undefined).length };
}

const optional = <Name extends string, T>(name: Name, value: T | undefined): { readonly [N in Name]?: T } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [N in Name]?: T };

/** Only what changed, with its events. `lastSyncTime` changes only along with something else. */
function write(
  object: Pick<OwnObject, 'kind' | 'metadata' | 'status'>,
  after: Readonly<Record<string, unknown>> & object,
  outlook: Outlook,
  view?: KeyView,
): Action[] {
  const before: Readonly<Record<string, unknown>> = object.status ?? {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => !sameJson(before[name], after[name]));
  if (changed.length === 0) return [];
  const plain = changed.filter((name) => name !== 'keyValue');
  const members = {
    ...Object.fromEntries(plain.map((name) => [name, after[name] ?? null])),
    ...(object.kind === 'VirtualKey' ? { lastSyncTime: toTimestamp(outlook.now) } : {}),
    ...(changed.includes('keyValue') && after.keyValue === undefined ? { keyValue: null } : {}),
  };
  const shows = changed.includes('keyValue') && after.keyValue !== undefined;
  const patch: StatusPatch =
    shows && view !== undefined
      ? { members, keyValue: modeOf(view, outlook) === 'Full' ? 'full' : 'redacted' }
      : { members };
  const why = `its ${changed.join(', ')} changed`;
  return [{ action: 'WriteStatus', ...about(object, why), patch }, ...planEvents(object, after)];
}

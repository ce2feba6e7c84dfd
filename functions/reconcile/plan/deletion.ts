// What must be cleaned before a deleted object may go, and when is it let go all the same? Deletion never sticks (DESIGN 6, law 3).
import { toTimestamp } from '#core/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { FINALIZER, RETAINED_LABEL } from '#crds/group.ts';
import type { VirtualKey } from '#crds/virtual-key.ts';
import type { Action } from '../action.ts';
import {
  aliasOf,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  type KeyView,
  type Member,
  type OwnObject,
  type PresentSecret,
  pathOf,
  type World,
} from '../world.ts';
import { about } from './about.ts';
import { isLabelled, isOurs, ownersAfter, present, shapeOf } from './key-secret.ts';
import type { Outlook } from './outlook.ts';
import { tell } from './tell.ts';

/** So long the database is tried; the first run after that lets go. */
export const PATIENCE: Millis = 20_000;

export const isDeleted = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.deletionTimestamp !== undefined;
export const hasFinalizer = ({ metadata }: Pick<OwnObject, 'metadata'>): boolean =>
  metadata.finalizers?.includes(FINALIZER) === true;

/** Whether the time to try is over. */
function isPatienceOver({ metadata }: Pick<OwnObject, 'metadata'>, now: Millis): boolean {
  return metadata.deletionTimestamp !== undefined && now >= Date.parse(metadata.deletionTimestamp) + PATIENCE;
}

/** Why a deleted object cannot be cleaned yet; undefined where nothing is in the way. */
export function heldUpBy({ object, database }: InstanceView, { failures }: World): string | undefined {
  return failures.get(idOf(object.kind, object.metadata)) ?? (database.ok ? undefined : database.message);
}

export function memberHeldUpBy(member: Member, outlook: Outlook): string | undefined {
  const { failures, unobserved } = outlook.world;
  const { instance } = outlook.standing(member);
  if (instance === undefined) return unobserved.get(instancePathOf(member));
  const failed = failures.get(idOf(member.kind, member.metadata));
  return failed ?? (instance.database.ok ? undefined : instance.database.message);
}

/** What people are told of a deleted object: what it waits for, until when, and what then. */
export function toWaiting({ metadata }: Pick<OwnObject, 'metadata'>, why: string | undefined): string {
  const { deletionTimestamp } = metadata;
  if (why === undefined || deletionTimestamp === undefined || !hasFinalizer({ metadata })) return 'it is being deleted';
  const until = toTimestamp(Date.parse(deletionTimestamp) + PATIENCE);
  return `it is being deleted and waits until ${until} for its database, which must be told: ${why}. The first run after that (within a minute) lets it go all the same, and leaves there what is there`;
}

/** Its keys stop working with it: their claims are retired in one go. */
export function planInstanceDeletion(view: InstanceView, { now, world }: Outlook): Action[] {
  const { object } = view;
  if (!hasFinalizer(object)) return [];
  const instance = pathOf(object.metadata);
  const why = heldUpBy(view, world);
  if (why === undefined) {
    return [
      { action: 'CloseInstance', ...about(object, 'it is deleted: none of its keys works any more'), instance },
      removeFinalizer(object),
    ];
  }
  return isPatienceOver(object, now) ? [letGo(object, `keys in its database still count as live: ${why}`)] : [];
}

/** A user or team: its claim is retired; keys that name it say so. */
export function planScopeDeletion(member: Member, outlook: Outlook, first: ReadonlyArray<Action> = []): Action[] {
  if (!hasFinalizer(member)) return [...first];
  const retirement = planRetirement(member, outlook);
  return retirement === undefined ? [...first] : [...first, ...retirement];
}

/** `Delete`: claim, value and Secret go. `Retain`: claim and Secret stay and work on until a VirtualKey adopts them. */
export function planKeyDeletion(view: KeyView, outlook: Outlook): Action[] {
  const key = view.object;
  if (!hasFinalizer(key)) return [];
  const { instance } = outlook.standing(key);
  const claim = instance?.claims.get(aliasOf(key).key);
  const mine = claim?.holder.uid === key.metadata.uid ? claim : undefined;
  const proven = mine === undefined ? [] : hashesOf(mine);
  const secret = present(view.secret);
  const ours = secret !== undefined && isLabelled(secret) && isOurs(secret, key, proven) ? secret : undefined;
  const keeps = key.spec.deletionPolicy === 'Retain' && ours?.hash !== undefined && proven.includes(ours.hash);
  if (keeps && mine !== undefined && instance?.database.ok === true && !isDeleted(instance.object)) {
    return planRetention(key, ours, mine, outlook.judge(instance).workload.url);
  }
  const retirement = planRetirement(key, outlook);
  if (retirement === undefined) return [];
  const previous = present(view.previous);
  const secrets = [
    ours,
    previous !== undefined && isLabelled(previous) && isOurs(previous, key, proven) ? previous : undefined,
  ];
  const deletes = secrets.flatMap((one): Action[] => (one === undefined ? [] : [deleteSecret(key, one)]));
  return [...retirement.slice(0, -1), ...deletes, ...retirement.slice(-1)];
}

/** Claim and Secret say so before the object goes; an owner reference would take the Secret along. */
function planRetention(key: VirtualKey, secret: PresentSecret, claim: Claim, url: string | undefined): Action[] {
  const { policy } = claim;
  if (policy === undefined || !('object' in policy)) return [];
  const on = {
    ...about(key, 'deletionPolicy is Retain: it works on until a VirtualKey adopts it'),
    instance: instancePathOf(key),
  };
  const made = shapeOf(key, secret.name, url);
  const shape = { ...made, labels: { ...made.labels, [RETAINED_LABEL]: 'true' }, owners: [] };
  const isOwned = ownersAfter(secret.owners, shape).length !== secret.owners.length;
  const isMarked = secret.labels[RETAINED_LABEL] === 'true';
  const release: Action[] = isOwned || !isMarked ? [{ action: 'UpdateSecret', ...on, shape, value: 'same' }] : [];
  // Blocked because its user went just before it: the key is to go on working.
  const write = {
    policy: { ...policy, blocked: key.spec.blocked, retained: secret.name },
    generation: key.metadata.generation,
  };
  const remember: Action[] =
    policy.retained === secret.name && policy.blocked === key.spec.blocked
      ? []
      : [{ action: 'WritePolicy', ...on, claim: aliasOf(key).key, write }];
  if (release.length + remember.length > 0) return [...release, ...remember];
  return [toldRetained(key, secret.name), removeFinalizer(key)];
}

function toldRetained(key: VirtualKey, secret: string): Action {
  const alias = JSON.stringify(aliasOf(key).alias);
  const message =
    `its deletionPolicy is Retain: the key goes on working until a VirtualKey of alias ${alias} adopts it; ` +
    `its value is in Secret "${secret}": delete that to end it`;
  return tell(key, { type: 'Normal', reason: 'KeyRetained', message, once: 'KeyRetained' });
}

/** Ends with the removal of the finalizer. Undefined: the database is to be tried again. */
function planRetirement(member: Member, outlook: Outlook): Action[] | undefined {
  const { instance } = outlook.standing(member);
  const held = instance?.claims.get(aliasOf(member).key);
  const why = memberHeldUpBy(member, outlook);
  const over = isPatienceOver(member, outlook.now);
  if (instance === undefined) {
    if (why !== undefined) return over ? [letGo(member, `its claim is left behind: ${why}`)] : undefined;
    return [removeFinalizer(member)];
  }
  if (why !== undefined) {
    return over ? [letGo(member, `its claim is left behind until a sweep finds it: ${why}`)] : undefined;
  }
  if (held?.holder.uid !== member.metadata.uid) return [removeFinalizer(member)];
  const { kind: scope, alias } = aliasOf(member);
  const freed = `it is deleted: the ${scope} alias "${alias}" is free again`;
  const on = { ...about(member, freed), instance: instancePathOf(member) };
  return [{ action: 'RetireClaim', ...on, claim: aliasOf(member).key, scopeId: held.scopeId }, removeFinalizer(member)];
}

function deleteSecret(key: VirtualKey, secret: PresentSecret): Action {
  const on = { ...about(key, `it is deleted: Secret "${secret.name}" goes with it`), instance: instancePathOf(key) };
  return { action: 'DeleteSecret', ...on, secret: secret.name, uid: secret.uid };
}

const removeFinalizer = (object: OwnObject): Action => ({
  action: 'RemoveFinalizer',
  ...about(object, 'nothing of it is left to clean'),
});

const letGo = (object: OwnObject, left: string): Action => ({
  action: 'RemoveFinalizer',
  ...about(object, 'it was tried for 20 seconds'),
  letGo: left,
});

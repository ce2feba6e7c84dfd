// Is the value in a key's Secret the one that works, and what makes it so? (DESIGN 6, Keys; 10, Keys.)
// Of two runs at once neither may retire what the other just published. So: claims are read before Secrets; where a value
// takes another's place, the old one is retired before the new Secret exists, and act looks again before it repairs.
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import { askedFor, overlapOf } from '#core/rotation.ts';
import type { Action, SecretShape } from '../action.ts';
import { aliasOf, currentHashesOf, hashesOf, instancePathOf, type KeyView, type PresentSecret } from '../world.ts';
import { about } from './about.ts';
import { driftOf, isLabelled, isOurs, leftoverOf, present, shapeOf } from './key-secret.ts';
import { endedOf, isOverlapping, othersOf, whyRotate } from './rotation.ts';

export interface KeyValuePlan {
  readonly view: KeyView;
  readonly claim: Claim;
  /** The instance's base address, for entries that want it. */
  readonly url: string | undefined;
  /** By the database's clock. */
  readonly time: Millis;
}

export function planKeyValue(plan: KeyValuePlan): Action[] {
  const { view, claim } = plan;
  const shape = shapeOf(view.object, view.secretName, plan.url);
  const live = currentHashesOf(claim);
  const ended = retire(view, claim, endedOf(claim, plan.time), 'the overlap of a rotation is over');
  if (view.secret.state === 'unread') return ended;
  if (view.secret.state === 'absent') return [...ended, ...planLostSecret(plan, shape, live)];
  if (!isOurs(view.secret, view.object, hashesOf(claim))) return ended;
  return [...ended, ...planPresentSecret(plan, view.secret, shape, live)];
}

/** Renamed: the value moves along. Lost: whoever has the old value has lost it too, a new one is minted. */
function planLostSecret({ view, claim }: KeyValuePlan, shape: SecretShape, live: ReadonlyArray<string>): Action[] {
  const previous = present(view.previous);
  const moves = previous?.hash !== undefined && live.includes(previous.hash) && isOurs(previous, view.object, live);
  if (moves) {
    const why = `its Secret is now called "${shape.name}"`;
    return [{ action: 'CreateSecret', ...about(view.object, why), shape, value: 'previous' }];
  }
  const lost = live.length > 0 || view.object.status?.keyID !== undefined;
  const why = lost
    ? `Secret "${shape.name}" is lost: a new key takes its place`
    : `it has no key yet: one is made in Secret "${shape.name}"`;
  return [
    ...retire(view, claim, live, 'its Secret is lost'),
    { action: 'CreateSecret', ...about(view.object, why), shape, value: 'new' },
  ];
}

/** In this order: the first that fits says what is to be done. */
function planPresentSecret(
  { view, claim, time }: KeyValuePlan,
  secret: PresentSecret,
  shape: SecretShape,
  live: ReadonlyArray<string>,
): Action[] {
  const { hash } = secret;
  const update = (value: 'same' | 'status', why: string): Action[] => [
    { action: 'UpdateSecret', ...on(view, why), shape, value },
  ];
  // Only what has our label may be deleted later.
  if (!isLabelled(secret)) return update('same', `Secret "${secret.name}" lost our label`);
  // It holds a value that works.
  if (hash !== undefined && live.includes(hash)) {
    const drift = driftOf(secret, shape);
    const others = othersOf(claim, hash, time);
    const due = whyDue(view, claim, hash, time);
    const overlap = overlapOf(view.object.spec.rotation);
    return [
      ...retire(view, claim, others.replaced, whyOver(overlap), overlap),
      ...retire(view, claim, others.lost, 'nobody was ever given it'),
      ...(due !== undefined ? rotate(view, claim, shape, due) : []),
      ...(due !== undefined || drift === undefined
        ? []
        : update('same', `the ${drift} of Secret "${secret.name}" differ`)),
      ...planPrevious(view, secret),
    ];
  }
  // It holds a value that is to work, once the gateway has a policy to judge it by.
  const isOld = isOverlapping(claim, hash, time);
  if (hash !== undefined && !isOld && isToWork(view, secret, live)) {
    const why = `the ${secret.minted === true ? 'new ' : ''}value in Secret "${secret.name}" is to work`;
    const add = { claim: aliasOf(view.object).key, scopeId: claim.scopeId, hash, ...askedOf(view.object) };
    return claim.policy === undefined ? [] : [{ action: 'AddValue', ...on(view, why), ...add }];
  }
  // It was edited, and the status still has the true value.
  if (view.statusHash !== undefined && live.includes(view.statusHash)) {
    return update('status', `the key in Secret "${secret.name}" was edited: the true one is put back`);
  }
  // It was put back to a value that a rotation had replaced, which works for a while: another takes its place in time.
  if (isOld)
    return rotate(view, claim, shape, `the value in Secret "${secret.name}" was replaced and works no longer soon`);
  const why = `the key in Secret "${secret.name}" was edited and the true one is lost: a new key takes its place`;
  const unless = { claim: aliasOf(view.object).key, live };
  return [{ action: 'DeleteSecret', ...on(view, why), secret: secret.name, uid: secret.uid, unless }];
}

const whyOver = (overlap: Millis): string =>
  `a new value has taken its place: the one before works on for ${overlap / 1000} seconds`;

/** Nothing lives, and the value is new, or the one that the key had: a minting that was cut short, or a row that was lost. */
function isToWork(view: KeyView, secret: PresentSecret, live: ReadonlyArray<string>): boolean {
  if (live.length > 0 || secret.hash === view.refusedHash) return false;
  const known = view.object.status?.keyID;
  return secret.minted === true || known === undefined || known === secret.hash;
}

/** The Secret of the name before, once the new one is there. */
function planPrevious(view: KeyView, secret: PresentSecret): Action[] {
  const previous = leftoverOf(view, secret);
  if (previous === undefined) return [];
  const why = `Secret "${previous.name}" is called "${secret.name}" now`;
  return [{ action: 'DeleteSecret', ...on(view, why), secret: previous.name, uid: previous.uid }];
}

function retire(
  view: KeyView,
  { scopeId }: Claim,
  hashes: ReadonlyArray<string>,
  why: string,
  overlap?: Millis,
): Action[] {
  if (hashes.length === 0) return [];
  const until = overlap === undefined ? {} : { overlap };
  return [{ action: 'RetireValues', ...on(view, why), claim: aliasOf(view.object).key, scopeId, hashes, ...until }];
}

/** Not before the gateway has a policy to judge it by. */
function whyDue({ object }: KeyView, claim: Claim, hash: string, time: Millis): string | undefined {
  const value = claim.values.find((one) => one.hash === hash);
  return claim.policy === undefined || value === undefined ? undefined : whyRotate(object, value, claim, time);
}

function rotate(view: KeyView, { scopeId }: Claim, shape: SecretShape, why: string): Action[] {
  const { key: claim } = aliasOf(view.object);
  return [{ action: 'RotateSecret', ...on(view, why), claim, scopeId, shape, ...askedOf(view.object) }];
}

function askedOf({ metadata }: KeyView['object']): { readonly asked?: string } {
  const asked = askedFor(metadata.annotations);
  return asked === undefined ? {} : { asked };
}

const on = ({ object }: KeyView, why: string) => ({ ...about(object, why), instance: instancePathOf(object) });

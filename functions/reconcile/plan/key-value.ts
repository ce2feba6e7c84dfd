// Is the value in a key's Secret the one that works, and what makes it so? (DESIGN 6, Keys; 10, Keys.)
// Of two runs at once neither may retire what the other just published. So: claims are read before Secrets; where a value
// takes another's place, the old one is retired before the new Secret exists, and act looks again before it repairs.
import type { Claim } from '#core/ports/registry.ts';
import type { Action, SecretShape } from '../action.ts';
import { aliasOf, currentHashesOf, instancePathOf, type KeyView, type PresentSecret } from '../world.ts';
import { about } from './about.ts';
import { driftOf, isLabelled, isOurs, present, shapeOf } from './key-secret.ts';

export interface KeyValuePlan {
  readonly view: KeyView;
  readonly claim: Claim;
  /** The instance's base address, for entries that want it. */
  readonly url: string | undefined;
}

export function planKeyValue(plan: KeyValuePlan): Action[] {
  const { view, claim } = plan;
  const shape = shapeOf(view.object, view.secretName, plan.url);
  const live = currentHashesOf(claim);
  if (view.secret.state === 'unread') return [];
  if (view.secret.state === 'absent') return planLostSecret(plan, shape, live);
  if (!isOurs(view.secret, view.object, live)) return [];
  return planPresentSecret(plan, view.secret, shape, live);
}

/** Renamed: the value moves along. Lost: whoever has the old value has lost it too, a new one is minted. */
function planLostSecret({ view, claim }: KeyValuePlan, shape: SecretShape, live: ReadonlyArray<string>): Action[] {
  const on = about(view.object, '');
  const previous = present(view.previous);
  const moves = previous?.hash !== undefined && live.includes(previous.hash) && isOurs(previous, view.object, live);
  if (moves) {
    return [
      { action: 'CreateSecret', ...on, why: `its Secret is now called "${shape.name}"`, shape, value: 'previous' },
    ];
  }
  const lost = live.length > 0 || view.object.status?.keyID !== undefined;
  const why = lost ? `Secret "${shape.name}" is lost: a new key takes its place` : 'it has no key yet';
  return [
    ...retire(view, claim, live, 'its Secret is lost'),
    { action: 'CreateSecret', ...on, why, shape, value: 'new' },
  ];
}

function planPresentSecret(
  { view, claim }: KeyValuePlan,
  secret: PresentSecret,
  shape: SecretShape,
  live: ReadonlyArray<string>,
): Action[] {
  const on = { ...about(view.object, ''), instance: instancePathOf(view.object) };
  const claimed = aliasOf(view.object).key;
  if (!isLabelled(secret)) {
    return [{ action: 'UpdateSecret', ...on, why: `Secret "${secret.name}" lost our label`, shape, value: 'same' }];
  }
  const usable = secret.hash !== undefined && secret.hash !== view.refusedHash;
  if (usable && secret.hash !== undefined && live.includes(secret.hash)) {
    const drift = driftOf(secret, shape);
    return [
      ...retire(
        view,
        claim,
        live.filter((hash) => hash !== secret.hash),
        'its Secret has another value',
      ),
      ...(drift === undefined
        ? []
        : [
            {
              action: 'UpdateSecret',
              ...on,
              why: `the ${drift} of Secret "${secret.name}" differ`,
              shape,
              value: 'same',
            } as const,
          ]),
      ...planPrevious(view, secret),
    ];
  }
  const known = view.object.status?.keyID;
  const isMintedOrRestored =
    live.length === 0 && (secret.minted === true || known === undefined || known === secret.hash);
  if (usable && secret.hash !== undefined && isMintedOrRestored) {
    // The gateway meets no value before it has a policy to judge it by.
    if (claim.policy === undefined) return [];
    const why = secret.minted === true ? 'its new value is to work' : 'the value in its Secret is to work';
    return [{ action: 'AddValue', ...on, why, claim: claimed, scopeId: claim.scopeId, hash: secret.hash }];
  }
  if (view.statusHash !== undefined && live.includes(view.statusHash)) {
    return [
      {
        action: 'UpdateSecret',
        ...on,
        why: `the key in Secret "${secret.name}" was edited: the true one is put back`,
        shape,
        value: 'status',
      },
    ];
  }
  const why = `the key in Secret "${secret.name}" was edited and the true one is lost: a new key takes its place`;
  return [
    { action: 'DeleteSecret', ...on, why, secret: secret.name, uid: secret.uid, unless: { claim: claimed, live } },
  ];
}

/** The Secret of the name before, once the new one is there. */
function planPrevious(view: KeyView, secret: PresentSecret): Action[] {
  const previous = present(view.previous);
  if (
    previous === undefined ||
    previous.uid === secret.uid ||
    !isLabelled(previous) ||
    !isOurs(previous, view.object, [])
  )
    return [];
  const on = {
    ...about(view.object, `its Secret is now called "${secret.name}"`),
    instance: instancePathOf(view.object),
  };
  return [{ action: 'DeleteSecret', ...on, secret: previous.name, uid: previous.uid }];
}

function retire(view: KeyView, { scopeId }: Claim, hashes: ReadonlyArray<string>, why: string): Action[] {
  if (hashes.length === 0) return [];
  const on = { ...about(view.object, why), instance: instancePathOf(view.object) };
  return [{ action: 'RetireValues', ...on, claim: aliasOf(view.object).key, scopeId, hashes }];
}

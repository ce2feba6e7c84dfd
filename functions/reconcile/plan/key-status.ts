// What should a key's status say: its five fields of SPEC.md, and why it works or not?
import { type Judgement, toTimestamp } from '#core/conditions.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Claim } from '#core/ports/registry.ts';
import type { VirtualKeyStatus } from '#crds/virtual-key.ts';
import type { Action } from '../action.ts';
import type { Problem } from '../problem.ts';
import { hashesOf, instancePathOf, type KeyView } from '../world.ts';
import { judgeModels } from './judge-models.ts';
import { displayOf, isOurs, leftoverOf, present } from './key-secret.ts';
import type { Outlook, Standing } from './outlook.ts';
import { expiryOf } from './policies.ts';
import { judgeRotation, toldOfRotation } from './rotation.ts';
import { judgeSoftBudget, planSoftBudgetEvent } from './soft-budget.ts';
import { spendOf, spendStatusOf, toSpendStatus } from './spend.ts';
import { observed, optional, toReady, writeStatus } from './write-status.ts';

/** `problem`: why it does not work. */
export function planKeyStatus(view: KeyView, outlook: Outlook, problem: Problem | undefined): Action[] {
  const key = view.object;
  const standing = outlook.standing(key);
  if (standing.at === 'paused') return [];
  const claim = standing.at === 'admitted' ? outlook.claim(key, standing.instance) : undefined;
  const mine = claim?.state === 'ours' ? claim.claim : undefined;
  const isLost = claim !== undefined && mine === undefined;
  const soft = mine === undefined ? undefined : judgeSoft(key, mine, outlook);
  const further = mine === undefined ? [] : judgeFurther(view, mine, standing, soft);
  const after: VirtualKeyStatus = {
    ...observed(key, [toReady(problem), judgeModels(key, outlook), ...further], outlook, mine && FURTHER),
    ...secretStatus(view, mine === undefined ? undefined : hashesOf(mine), outlook),
    ...(isLost ? {} : claimStatus(view, mine, outlook)),
    isActive: problem === undefined,
    ...optional('lastSyncTime', key.status?.lastSyncTime),
  };
  const writes = writeStatus(key, after, outlook, {
    shows: modeOf(view, outlook) === 'Full' ? 'full' : 'redacted',
    newKey: mine === undefined ? undefined : toldOfRotation(key, mine, timeAt(standing)),
  });
  return [...writes, ...planSoftBudgetEvent(key, soft)];
}

/** Conditions that a key has only while there is something to say. */
const FURTHER = ['Rotation', 'SoftBudgetReached'];

function judgeFurther(
  view: KeyView,
  claim: Claim,
  standing: Standing,
  soft: Judgement | undefined,
): ReadonlyArray<Judgement> {
  const published = view.secret.state === 'unread' ? view.object.status?.keyID : present(view.secret)?.hash;
  const rotation = judgeRotation(view.object, claim, published, timeAt(standing));
  return [rotation, soft].filter((judged) => judged !== undefined);
}

function judgeSoft(key: KeyView['object'], claim: Claim, outlook: Outlook): Judgement | undefined {
  const standing = outlook.standing(key);
  return standing.at === 'admitted'
    ? judgeSoftBudget(key, spendOf(key, claim, standing.instance, outlook.now))
    : undefined;
}

const timeAt = ({ instance }: Standing): Millis => instance?.time ?? 0;

type FromClaim = Pick<VirtualKeyStatus, 'currentSpend' | 'budgetResetDate' | 'expiryDate'>;

/** What the claim tells. While it cannot be seen, what was seen of it stays. */
function claimStatus({ object: key }: KeyView, claim: Claim | undefined, outlook: Outlook): FromClaim {
  const standing = outlook.standing(key);
  if (claim === undefined || standing.at !== 'admitted') {
    return { ...spendStatusOf(key), ...optional('expiryDate', key.status?.expiryDate) };
  }
  const spend = spendOf(key, claim, standing.instance, outlook.now);
  const expiry = expiryOf(key, claim);
  return {
    ...toSpendStatus(key, spend),
    ...optional('expiryDate', expiry === undefined ? undefined : toTimestamp(expiry)),
  };
}

/** A value is shown once it works. While nothing can be known of it, what was shown stays. */
export function secretStatus(
  view: KeyView,
  live: ReadonlyArray<string> | undefined,
  outlook: Outlook,
): Pick<VirtualKeyStatus, 'keySecretRef' | 'keyValue' | 'keyID'> {
  const before = view.object.status ?? {};
  // Where the one of the new name could not be made, the one of the name before is still the key's.
  const secret = present(view.secret) ?? present(view.previous);
  const mode = modeOf(view, outlook);
  const shows = secret?.hash !== undefined && live?.includes(secret.hash) === true && isOurs(secret, view.object, live);
  if (shows && secret?.hash !== undefined) {
    const value = secret.data.get('key') ?? '';
    // Not before the one of the name before is gone: who forgets it leaves it behind.
    const left = leftoverOf(view, secret);
    return {
      keySecretRef: left?.name ?? secret.name,
      keyID: secret.hash,
      keyValue: mode === 'Full' ? value : displayOf(value),
    };
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

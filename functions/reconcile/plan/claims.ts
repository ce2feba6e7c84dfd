// Does a member have its alias to itself, and whose claims are left over?
import { type Claim, SAME_PLACE } from '#core/ports/registry.ts';
import type { Action } from '../action.ts';
import {
  aliasOf,
  hashesOf,
  type InstanceView,
  idOf,
  instancePathOf,
  type KeyView,
  KIND_OF,
  type Member,
  pathOf,
} from '../world.ts';
import { about } from './about.ts';
import { isLabelled, isOurs, present } from './key-secret.ts';
import { mayStillArrive } from './ledger.ts';
import type { Outlook } from './outlook.ts';

/** First claim wins. An orphaned claim is taken over by who proves its value, else it is open once a sweep has retired it. */
export function planClaim(member: Member, instance: InstanceView, outlook: Outlook, view?: KeyView): Action[] {
  const state = outlook.claim(member, instance);
  const { kind: scope, alias, key } = aliasOf(member);
  const on = { ...about(member, ''), instance: instancePathOf(member), scope, alias };
  if (state.state === 'open') {
    const rivals = olderRivals(member, outlook);
    const why = `nobody has the ${scope} alias "${alias}" yet`;
    return rivals ? [] : [{ action: 'ClaimAlias', ...on, why, ...broughtBy(view) }];
  }
  if (state.state !== 'orphaned') return [];
  const proof = view === undefined ? undefined : proofOf(view, state.claim);
  if (proof !== undefined) {
    return [{ action: 'ClaimAlias', ...on, why: 'its Secret holds the key of the claim: it is adopted', proof }];
  }
  const { holder } = state.claim;
  const isBack = holder.namespace === member.metadata.namespace && holder.name === member.metadata.name;
  if (scope !== 'key' && isBack && mayStillArrive(instance)) {
    const why = 'it is back where it was under the ledger that was adopted';
    return [{ action: 'ClaimAlias', ...on, why, proof: SAME_PLACE }];
  }
  if (state.retained !== undefined && !instance.gone.has(state.claim.scopeId)) return [];
  if (instance.complete && !mayStillArrive(instance)) return [];
  const why = `the ${pathOf(holder)} that had its alias is gone`;
  return [
    {
      action: 'RetireClaim',
      ...about(member, why),
      instance: instancePathOf(member),
      claim: key,
      scopeId: state.claim.scopeId,
    },
  ];
}

/** A value that a retained claim elsewhere may have. */
function broughtBy(view: KeyView | undefined): { readonly proof?: string } {
  const secret = present(view?.secret);
  return secret?.hash !== undefined && isLabelled(secret) ? { proof: secret.hash } : {};
}

/** The hash of the value in the Secret that the member brings along, if it is one of the claim's. */
function proofOf(view: KeyView, claim: Claim): string | undefined {
  const live = hashesOf(claim);
  const secret = present(view.secret);
  const proven = secret?.hash !== undefined && live.includes(secret.hash) && isOurs(secret, view.object, live);
  return proven ? secret?.hash : undefined;
}

/** Of several members here that could claim the same alias now the oldest asks first. */
function olderRivals(member: Member, outlook: Outlook): boolean {
  return outlook
    .wanting(instancePathOf(member), aliasOf(member).key)
    .some(
      (other) =>
        other.metadata.uid !== member.metadata.uid &&
        isOlder(other, member) &&
        other.metadata.deletionTimestamp === undefined &&
        outlook.standing(other).at === 'admitted' &&
        !outlook.world.failures.has(idOf(other.kind, other.metadata)),
    );
}

function isOlder(a: Member, b: Member): boolean {
  const [left, right] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp} ${pathOf(metadata)}`);
  return (left ?? '') < (right ?? '');
}

/** A sweep retires claims whose object is gone, or claims something else by now: another alias, another instance. */
export function planLeftovers(path: string, instance: InstanceView, outlook: Outlook): Action[] {
  if (!instance.complete || !instance.database.ok || instance.object.spec.paused || mayStillArrive(instance)) return [];
  return [...instance.claims].flatMap(([key, claim]): Action[] => {
    if (!instance.gone.has(claim.scopeId) || isAdopted(path, key, claim, outlook)) return [];
    const { holder, kind: scope, alias, scopeId } = claim;
    const { namespace, name } = holder;
    const why = `it is gone, or claims something else than the ${scope} alias "${alias}" by now`;
    return [{ action: 'RetireClaim', kind: KIND_OF[scope], namespace, name, why, instance: path, claim: key, scopeId }];
  });
}

/** Whether a key here proves the value of the claim. */
function isAdopted(path: string, key: string, claim: Claim, { world, wanting }: Outlook): boolean {
  return wanting(path, key).some((member) => {
    const view = member.kind === 'VirtualKey' ? world.keys.get(pathOf(member.metadata)) : undefined;
    return view !== undefined && proofOf(view, claim) !== undefined;
  });
}

// Which of the rules that admission asks with an object's references does a key, a user or a team break? Judged again, in the same words.
import { type Finding, toText } from '#core/finding.ts';
import { aliasTaken } from '#core/rules/alias.ts';
import { keyConflict, secretConflict } from '#core/rules/conflicts.ts';
import { modelsServed } from '#core/rules/models.ts';
import { referenceFound } from '#core/rules/references.ts';
import type { User } from '#crds/user.ts';
import type { Problem } from '../problem.ts';
import { aliasOf, hashesOf, type KeyView, type Member, pathOf } from '../world.ts';
import { isOurs, present } from './key-secret.ts';
import { type Outlook, toReferred } from './outlook.ts';
import { ownedKeyOf } from './owned-key.ts';
import { payersOf } from './policies.ts';

/** In the order in which admission tells them; of its models only when none is served: some alone keep nothing from working. */
export function mistakesOf(member: Member, outlook: Outlook, view?: KeyView): ReadonlyArray<Finding> {
  if (!('judgement' in outlook.standing(member))) return [];
  const models = modelMistakes(member, outlook);
  return [
    ...(models.length > 0 && models.length === member.spec.models.length ? models : []),
    ...aliasMistakes(member, outlook),
    ...(member.kind === 'VirtualKey' ? payersOf(member, outlook).missing : []),
    ...(view === undefined ? [] : secretMistakes(view, outlook)),
    ...(member.kind === 'User' ? [...teamMistakes(member, outlook), ...keyMistakes(member, outlook)] : []),
  ];
}

/** What keeps it from working, and whatever else is wrong where that is a mistake itself: one edit can mend all of them. */
export function withMistakes(cause: Problem, mistakes: ReadonlyArray<Finding>): Problem {
  const own = mistakes.filter(({ rule }) => rule === cause.reason);
  if (own.length === 0) return cause;
  const others = mistakes.filter((mistake) => !own.includes(mistake));
  return { reason: cause.reason, message: toText([...own, ...others]) };
}

/** Models that no entry of the instance serves. */
export function modelMistakes(member: Member, outlook: Outlook): ReadonlyArray<Finding> {
  const standing = outlook.standing(member);
  if (!('judgement' in standing)) return [];
  const { models, connectionRef } = member.spec;
  return modelsServed({ models }, connectionRef.instanceRef, standing.judgement.served);
}

const ALIAS = { VirtualKey: 'spec.keyAlias', User: 'spec.userEmail', Team: 'spec.teamAlias' } as const;

/** Somebody else claimed what it wants to be called. */
export function aliasMistakes(member: Member, outlook: Outlook): ReadonlyArray<Finding> {
  const standing = outlook.standing(member);
  if (!('judgement' in standing)) return [];
  const state = outlook.claim(member, standing.instance);
  if (state.state !== 'taken' && state.state !== 'orphaned') return [];
  const { kind, spec, metadata } = member;
  const { name, namespace } = state.state === 'taken' ? state.by : state.claim.holder;
  const finding = aliasTaken({
    path: ALIAS[kind],
    alias: aliasOf(member).alias,
    instance: spec.connectionRef.instanceRef,
    from: metadata.namespace,
    holder: { kind, namespace, name },
    retained: state.state === 'orphaned' ? state.retained : undefined,
  });
  return [finding];
}

/** Somebody else's Secret stands where its own would be. */
export function secretMistakes(view: KeyView, outlook: Outlook): ReadonlyArray<Finding> {
  const { object: key, secretName } = view;
  const secret = present(view.secret);
  const standing = outlook.standing(key);
  if (secret === undefined || !('judgement' in standing)) return [];
  const state = outlook.claim(key, standing.instance);
  const live = state.state === 'ours' ? hashesOf(state.claim) : [];
  if (isOurs(secret, key, live)) return [];
  return [secretConflict(key.metadata.name, key.spec.secretTemplate?.name, secretName)];
}

/** Teams that a user names and that are not there: the user's keys do not work, for nobody keeps that team's budget. */
export function teamMistakes({ metadata: { namespace }, spec }: User, { world }: Outlook): ReadonlyArray<Finding> {
  return spec.teamRefs.flatMap(({ name }, index) => {
    const team = toReferred(world.teams.get(pathOf({ namespace, name })));
    const reference = { kind: 'Team', path: `spec.teamRefs[${index}].name`, name, namespace } as const;
    const finding = referenceFound(reference, team, spec.connectionRef.instanceRef);
    return finding === undefined ? [] : [finding];
  });
}

/** What keeps a user's own key from being made, or from working. */
export function keyMistakes(user: User, outlook: Outlook): ReadonlyArray<Finding> {
  const { key, owned } = ownedKeyOf(user, outlook);
  if (!user.spec.autoCreateKey || key === undefined) return [];
  return owned ? aliasMistakes(key, outlook) : [keyConflict(key.metadata.name)];
}

// Are the team's members there, on the same instance? Only a warning: somebody has to come first, team or members.
import type { Check } from '../check.ts';
import { TeamView, toView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

/** So many look-ups at most: a team may have a thousand members. */
const MOST_LOOKED_UP = 50;

export const membersExist: Check = async ({ object, old }, lookup) => {
  const before = new Set(toView(TeamView, old?.spec).members.map(({ name }) => name));
  const added = toView(TeamView, object.spec)
    .members.map(({ name }, index) => ({ name, path: `spec.members[${index}].name` }))
    .filter(({ name }) => !before.has(name))
    .slice(0, MOST_LOOKED_UP);
  const problems = added.map((member) => referenceProblem({ object, kind: 'User', ...member, effect: 'warn' }, lookup));
  return (await Promise.all(problems)).flat();
};

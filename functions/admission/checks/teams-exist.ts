// Are the user's teams there, on the same instance?
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const teamsExist: Check = async ({ object }, lookup) => {
  const judgeTeam = async ({ name }: { name?: string | undefined }, index: number) => {
    if (name === undefined) return [];
    const found = await lookup.team(object.metadata.namespace, name);
    return referenceProblem({ object, kind: 'Team', path: `spec.teamRefs[${index}].name`, name, found });
  };
  return (await Promise.all(toView(UserView, object.spec).teamRefs.map(judgeTeam))).flat();
};

// Are the user's teams there, on the same instance?
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const teamsExist: Check = async ({ object }, lookup) => {
  const problems = toView(UserView, object.spec).teamRefs.map(({ name }, index) =>
    referenceProblem({ object, kind: 'Team', path: `spec.teamRefs[${index}].name`, name }, lookup),
  );
  return (await Promise.all(problems)).flat();
};

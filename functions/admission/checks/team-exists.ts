// Is the key's team there, on the same instance?
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const teamExists: Check = ({ object }, lookup) => {
  const name = toView(KeyView, object.spec).teamRef?.name;
  return referenceProblem({ object, kind: 'Team', path: 'spec.teamRef.name', name }, lookup);
};

// Is the key's user there, on the same instance?
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const userExists: Check = ({ object }, lookup) => {
  const name = toView(KeyView, object.spec).userRef?.name;
  return referenceProblem({ object, kind: 'User', path: 'spec.userRef.name', name }, lookup);
};

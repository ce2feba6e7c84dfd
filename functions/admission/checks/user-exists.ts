// Is the key's user there, on the same instance?
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const userExists: Check = async ({ object }, lookup) => {
  const name = toView(KeyView, object.spec).userRef?.name;
  if (name === undefined) return [];
  const found = await lookup.user(object.metadata.namespace, name);
  return referenceProblem({ object, kind: 'User', path: 'spec.userRef.name', name, found });
};

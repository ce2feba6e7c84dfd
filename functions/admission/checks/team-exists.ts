// Is the key's team there, on the same instance?
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';
import { referenceProblem } from './reference-problem.ts';

export const teamExists: Check = async ({ object }, lookup) => {
  const name = toView(KeyView, object.spec).teamRef?.name;
  if (name === undefined) return [];
  const found = await lookup.team(object.metadata.namespace, name);
  return referenceProblem({ object, kind: 'Team', path: 'spec.teamRef.name', name, found });
};

// Has another team of the instance this alias?
import { teams } from '#crds/resources.ts';
import type { Check } from '../check.ts';
import { TeamView, toView } from '../spec-views.ts';
import { findAliasTaken } from './alias-taken.ts';

export const teamAliasFree: Check = ({ object }, lookup) => {
  const alias = toView(TeamView, object.spec).teamAlias;
  return findAliasTaken({ object, resource: teams, field: 'spec.teamAlias', alias }, lookup);
};

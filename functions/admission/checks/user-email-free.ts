// Has another user of the instance this e-mail address?
import { users } from '#crds/resources.ts';
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';
import { findAliasTaken } from './alias-taken.ts';

export const userEmailFree: Check = ({ object }, lookup) => {
  const alias = toView(UserView, object.spec).userEmail;
  return findAliasTaken({ object, resource: users, field: 'spec.userEmail', alias }, lookup);
};

// Has another key of the instance this alias?
import { virtualKeys } from '#crds/resources.ts';
import type { Check } from '../check.ts';
import { KeyView, toView } from '../spec-views.ts';
import { findAliasTaken } from './alias-taken.ts';

export const keyAliasFree: Check = ({ object }, lookup) => {
  const alias = toView(KeyView, object.spec).keyAlias;
  return findAliasTaken({ object, resource: virtualKeys, field: 'spec.keyAlias', alias }, lookup);
};

// Does the instance serve anything?
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';

export const someModels: Check = async ({ object }) => {
  if (toView(InstanceView, object.spec).models.length > 0) return [];
  const message = 'has no entries: the instance serves no model until one is added';
  return [{ rule: 'NoModels', path: 'spec.models', value: undefined, message, effect: 'warn' }];
};

// Does the instance serve every model that the object names?
import { modelsServed as judgeModels } from '#core/rules/models-served.ts';
import type { Check } from '../check.ts';
import { InstanceView, KeyView, toView } from '../spec-views.ts';
import { instanceOf } from './instance-of.ts';

export const modelsServed: Check = async ({ object }, lookup) => {
  const { models, modelMaxBudget } = toView(KeyView, object.spec);
  if (models.length === 0 && Object.keys(modelMaxBudget).length === 0) return [];
  const reference = await instanceOf(object, lookup);
  if (reference?.instance === undefined) return [];
  const entries = toView(InstanceView, reference.instance.spec).models;
  const served = new Set(entries.flatMap(({ modelName }) => (modelName === undefined ? [] : [modelName])));
  return judgeModels({ models, modelMaxBudget }, reference, served);
};

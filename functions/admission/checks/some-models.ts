// Does the instance serve anything?
import { someModels as judgeModels } from '#core/rules/some-models.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';

export const someModels: Check = ({ object }) => judgeModels(toView(InstanceView, object.spec).models);

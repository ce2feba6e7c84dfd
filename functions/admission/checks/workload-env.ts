// Does the instance set a variable that the gateway's container sets itself? It is left out of the container (DESIGN 6).
import type { Finding } from '#core/finding.ts';
import { isOwnVariable } from '#core/own-variables.ts';
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';

export const workloadEnv: Check = ({ object }) =>
  toView(InstanceView, object.spec).env.flatMap(({ name }, index): Finding[] => {
    if (name === undefined || !isOwnVariable(name)) return [];
    const message = 'is set by the operator itself and is left out of the container; remove it';
    return [{ rule: 'OwnVariable', path: `spec.workload.env[${index}].name`, value: name, message, effect: 'warn' }];
  });

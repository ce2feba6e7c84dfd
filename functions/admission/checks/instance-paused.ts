// Does a key, a user or a team change whose instance is paused? It is let in, and said, so that a block is not taken for one (DESIGN 10).
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { isSameSpec } from '../subject.ts';
import { instanceOf } from './instance-of.ts';

export const instancePaused: Check = async ({ object, old }, lookup) => {
  const reference = await instanceOf(object, lookup);
  if (reference?.instance === undefined || !toView(InstanceView, reference.instance.spec).paused) return [];
  if (old !== undefined && isSameSpec(old, object)) return [];
  const name = `${reference.namespace}/${reference.name}`;
  const message = `GatewayInstance ${name} is paused: this is not acted on before its spec.paused is false; delete a VirtualKey to stop it now`;
  return [
    { rule: 'InstancePaused', path: 'spec.connectionRef.instanceRef', value: undefined, message, effect: 'warn' },
  ];
};

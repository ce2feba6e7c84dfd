// Does this update pause an instance, or change one that is paused? Then it is said what does not happen meanwhile (DESIGN 10).
import type { Check } from '../check.ts';
import { InstanceView, toView } from '../spec-views.ts';
import { isSameSpec } from '../subject.ts';

export const pausing: Check = ({ object, old }) => {
  if (old === undefined || !toView(InstanceView, object.spec).paused || isSameSpec(old, object)) return [];
  const message =
    'nothing of a paused instance is acted on but deletion, and what runs goes on: blocks, budgets and other changes wait, no key is rotated, status shows no new spend; delete a VirtualKey to stop it meanwhile';
  return [{ rule: 'Pausing', path: 'spec.paused', value: true, message, effect: 'warn' }];
};

// The check of a VirtualKey with its Secret.
import { secretConflict } from '#core/rules/conflicts.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { Check } from '../check.ts';
import type { MemberFacts } from '../facts.ts';

export const keySecretFree: Check<VirtualKeySpec, MemberFacts> = ({ metadata: { name = '' }, spec, facts }) =>
  facts.foreign === undefined ? [] : [secretConflict(name, spec.secretTemplate?.name, facts.foreign)];

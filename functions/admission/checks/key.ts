// The checks of a VirtualKey by itself and with its Secret.
import { secretConflict } from '#core/rules/conflicts.ts';
import { isTimeZone } from '#core/time-zone.ts';
import type { VirtualKeySpec } from '#crds/virtual-key.ts';
import type { Check } from '../check.ts';
import type { MemberFacts } from '../facts.ts';

export const keySecretFree: Check<VirtualKeySpec, MemberFacts> = ({ metadata: { name = '' }, spec, facts }) =>
  facts.foreign === undefined ? [] : [secretConflict(name, spec.secretTemplate?.name, facts.foreign)];

export const timeZoneKnown: Check<VirtualKeySpec> = ({ spec: { budgetTimeZone: value = 'UTC' } }) => {
  if (isTimeZone(value)) return [];
  const message = 'must be a time zone of the IANA database; write its name, e.g. "Europe/Berlin"';
  return [
    { rule: 'TimeZoneUnknown', path: 'spec.budgetTimeZone', type: 'Not found', value, message, effect: 'refuse' },
  ];
};

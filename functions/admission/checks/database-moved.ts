// Does this update point the instance to another database while keys live in the old one?
import type { Finding } from '#core/finding.ts';
import type { Check } from '../check.ts';
import type { Lookup } from '../lookup.ts';
import { InstanceView, toView } from '../spec-views.ts';
import type { Draft } from '../subject.ts';
import { keysOfInstance } from './keys-of-instance.ts';

export const databaseMoved: Check = ({ object, old }, lookup) => {
  if (old === undefined) return [];
  const before = toView(InstanceView, old.spec).databaseSecretRef;
  const after = toView(InstanceView, object.spec).databaseSecretRef;
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  return moved(object, lookup);
};

async function moved(object: Draft, lookup: Lookup): Promise<Finding[]> {
  const keys = await keysOfInstance(object, lookup, 50);
  if (keys.length === 0) return [];
  const message =
    'if this is another database, the aliases and the spend of the keys stay behind in the old one; move the schema gateway_operator along, or all budgets begin anew';
  return [{ rule: 'DatabaseMoved', path: 'spec.databaseSecretRef', value: undefined, message, effect: 'warn' }];
}

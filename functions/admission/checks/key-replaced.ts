// Does this edit give the user's key a new value? (DESIGN 10, Keys)
import type { Check } from '../check.ts';
import { toView, UserView } from '../spec-views.ts';
import { sameInstance } from './instance-of.ts';

export const keyReplaced: Check = ({ object, old }) => {
  const before = toView(UserView, old?.spec);
  const after = toView(UserView, object.spec);
  if (old === undefined || before.autoCreateKey !== true || after.autoCreateKey !== true) return [];
  const message = "the user's key is replaced by a new one; give clients the new value from its Secret";
  if (before.keyAlias !== after.keyAlias) {
    return [{ rule: 'KeyReplaced', path: 'spec.keyAlias', value: after.keyAlias, message, effect: 'warn' }];
  }
  if (sameInstance(old.spec, object.spec)) return [];
  return [{ rule: 'KeyReplaced', path: 'spec.connectionRef', value: undefined, message, effect: 'warn' }];
};

// Does this update take a model away that keys are restricted to?
import type { Finding } from '#core/finding.ts';
import type { KubeObject } from '#core/ports/cluster.ts';
import type { Check } from '../check.ts';
import { type Lookup, MOST_KEYS } from '../lookup.ts';
import { KeyView, servedBy, toView } from '../spec-views.ts';
import type { Draft } from '../subject.ts';
import { keysOfInstance } from './keys-of-instance.ts';

const MOST_NAMED = 5;

export const modelsInUse: Check = ({ object, old }, lookup) => {
  if (old === undefined) return [];
  const gone = [...servedBy(old.spec).difference(servedBy(object.spec))];
  return gone.length === 0 ? [] : usersOf(gone, object, lookup);
};

async function usersOf(gone: readonly string[], object: Draft, lookup: Lookup): Promise<Finding[]> {
  const keys = await keysOfInstance(object, lookup);
  return gone.flatMap((model) => {
    const users = keys.filter(({ spec }) => toView(KeyView, spec).models.includes(model));
    if (users.length === 0) return [];
    const atLeast = keys.length >= MOST_KEYS ? 'at least ' : '';
    const message = `${JSON.stringify(model)} is no longer served, and ${atLeast}${users.length} of the keys are restricted to it: ${listOf(users)}; change their spec.models, or keep an entry of this name`;
    return [{ rule: 'ModelInUse', path: 'spec.models', value: undefined, message, effect: 'warn' as const }];
  });
}

function listOf(keys: ReadonlyArray<KubeObject>): string {
  const names = keys.slice(0, MOST_NAMED).map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
  return names.join(', ') + (keys.length > MOST_NAMED ? `, and ${keys.length - MOST_NAMED} more` : '');
}

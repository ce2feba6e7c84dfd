// Events: about an object of their own namespace, chosen by what they are about.

import type { KubeObject } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { invalid } from '../schema/field-errors.ts';
import { objectAt } from '../schema/json.ts';

const about = (member: string) => (object: KubeObject) => String(objectAt(object, 'involvedObject')[member] ?? '');

export const event: Strategy = {
  validate(object, old) {
    if (old !== undefined) return [];
    const namespace = object.metadata.namespace ?? '';
    const involved = String(objectAt(object, 'involvedObject').namespace ?? '');
    if (involved === namespace || (involved === '' && namespace === 'default')) return [];
    return [invalid('involvedObject.namespace', involved, 'does not match event.namespace')];
  },
  // `kubectl describe` and `kubectl events` choose by these.
  selectable: {
    'involvedObject.kind': about('kind'),
    'involvedObject.namespace': about('namespace'),
    'involvedObject.name': about('name'),
    'involvedObject.uid': about('uid'),
    'involvedObject.apiVersion': about('apiVersion'),
    reason: (object) => String(object.reason ?? ''),
    type: (object) => String(object.type ?? ''),
  },
};

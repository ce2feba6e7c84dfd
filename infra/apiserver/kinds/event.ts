// How do events look through core/v1 and through events.k8s.io/v1? They are stored once, as core/v1.
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { invalid } from '../schema/refusals.ts';
import { objectAt } from './member-of.ts';

const about = (member: string) => (object: KubeObject) => String(objectAt(object, 'involvedObject')[member] ?? '');

const selectable: NonNullable<Strategy['selectable']> = {
  'involvedObject.kind': about('kind'),
  'involvedObject.namespace': about('namespace'),
  'involvedObject.name': about('name'),
  'involvedObject.uid': about('uid'),
  'involvedObject.apiVersion': about('apiVersion'),
  'involvedObject.resourceVersion': about('resourceVersion'),
  'involvedObject.fieldPath': about('fieldPath'),
  reason: (object) => String(object.reason ?? ''),
  reportingComponent: (object) => String(object.reportingComponent ?? ''),
  source: (object) => String(objectAt(object, 'source').component ?? object.reportingComponent ?? ''),
  type: (object) => String(object.type ?? ''),
};

function check(object: KubeObject, old?: KubeObject): Cause[] {
  if (old !== undefined) return [];
  const namespace = object.metadata.namespace ?? '';
  const involved = String(objectAt(object, 'involvedObject').namespace ?? '');
  if (involved === namespace || (involved === '' && namespace === 'default')) return [];
  return [invalid('involvedObject.namespace', involved, 'does not match event.namespace')];
}

/** core/v1: the reporting fields and `source` are always there, as the real server writes them. */
export const event: Strategy = {
  prepare: (object) => ({
    ...object,
    reportingComponent: object.reportingComponent ?? '',
    reportingInstance: object.reportingInstance ?? '',
    source: object.source ?? {},
  }),
  check,
  selectable,
};

const renamed: ReadonlyArray<readonly [core: string, shown: string]> = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['reportingComponent', 'reportingController'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
];

/** events.k8s.io/v1: other names for the same members. */
export const eventsView: Strategy = {
  check: () => [],
  selectable: Object.fromEntries(
    Object.entries(selectable).map(([path, read]) => [
      path.replace(/^involvedObject/, 'regarding').replace('reportingComponent', 'reportingController'),
      read,
    ]),
  ),
  view: {
    show: (stored) => rename({ ...stored, apiVersion: 'events.k8s.io/v1' }, (pair) => pair),
    store: (shown) => rename({ ...shown, apiVersion: 'v1' }, ([core, view]) => [view, core]),
  },
};

function rename(
  object: KubeObject,
  direct: (pair: readonly [string, string]) => readonly [string, string],
): KubeObject {
  return renamed.reduce((result, pair) => {
    const [from, to] = direct(pair);
    return withMember(withMember(result, from, undefined), to, result[from]);
  }, object);
}

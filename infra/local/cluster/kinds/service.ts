// What does the server fill in on a Service?
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { isObject } from '../schema/json.ts';
import { invalid, required } from '../schema/refusals.ts';
import { eachObject, listAt, objectAt, withDefaults } from './member-of.ts';

/** No network stands behind a Service here: `clusterIP` stays `None` unless given, and nothing listens on it. */
export const service: Strategy = {
  prepare(object, old) {
    const spec = withDefaults(object.spec, {
      type: 'ClusterIP',
      sessionAffinity: 'None',
      internalTrafficPolicy: objectAt(object, 'spec').type === 'ExternalName' ? undefined : 'Cluster',
      clusterIP:
        objectAt(object, 'spec').type === 'ExternalName' ? undefined : (objectAt(old, 'spec').clusterIP ?? 'None'),
    });
    const ports = eachObject(spec.ports, (port) => withDefaults(port, { protocol: 'TCP', targetPort: port.port }));
    const complete = withMember(object, 'spec', { ...spec, ...(ports !== undefined && { ports }) });
    return old === undefined ? withMember(complete, 'status', { loadBalancer: {} }) : complete;
  },
  check: (object) => [...shape(object), ...ports(object)],
};

function shape(object: KubeObject): Cause[] {
  const { type, externalName, clusterIP } = objectAt(object, 'spec');
  if (type === 'ExternalName') return externalName ? [] : [required('spec.externalName')];
  return clusterIP === 'None' || listAt(object.spec, 'ports').length > 0 ? [] : [required('spec.ports')];
}

function ports(object: KubeObject): Cause[] {
  const all = listAt(object.spec, 'ports').filter(isObject);
  return all.flatMap(({ port, name }, i) => {
    const path = `spec.ports[${i}]`;
    const causes: Cause[] = [];
    if (typeof port === 'number' && (port < 1 || port > 65535)) {
      causes.push(invalid(`${path}.port`, port, 'must be between 1 and 65535, inclusive'));
    }
    if (all.length > 1 && !name) causes.push(required(`${path}.name`));
    return causes;
  });
}

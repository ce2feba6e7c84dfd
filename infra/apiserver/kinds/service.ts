// What does the server fill in on a Service?
import { createHash } from 'node:crypto';
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { invalid, required } from '../schema/refusals.ts';
import { eachObject, listAt, objectAt, withDefaults } from './member-of.ts';

/** No network stands behind a Service here: its address is made up, from the range of the real server, and nobody answers there. */
export const service: Strategy = {
  prepare(object, old) {
    const spec = withDefaults(object.spec, { type: 'ClusterIP', sessionAffinity: 'None' });
    const placed = spec.type === 'ExternalName' ? spec : withAddress(spec, object, old);
    const ports = eachObject(placed.ports, (port) => withDefaults(port, { protocol: 'TCP', targetPort: port.port }));
    const complete = withMember(object, 'spec', { ...placed, ...(ports !== undefined && { ports }) });
    return old === undefined ? withMember(complete, 'status', { loadBalancer: {} }) : complete;
  },
  check: (object) => [...shape(object), ...ports(object)],
};

/** An address comes with the uid, so at the second look at a new Service; an update keeps what there was. */
function withAddress(spec: JsonObject, { metadata }: KubeObject, old: KubeObject | undefined): JsonObject {
  const before = objectAt(old, 'spec');
  const clusterIP = spec.clusterIP ?? before.clusterIP ?? (metadata.uid && addressOf(metadata.uid));
  return withDefaults(spec, {
    clusterIP,
    clusterIPs: clusterIP === undefined ? undefined : [clusterIP],
    internalTrafficPolicy: 'Cluster',
    ipFamilies: ['IPv4'],
    ipFamilyPolicy: 'SingleStack',
  });
}

function addressOf(uid: string): string {
  const [third = 0, fourth = 0] = createHash('sha256').update(uid).digest();
  return `10.96.${third}.${Math.max(1, Math.min(fourth, 254))}`;
}

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

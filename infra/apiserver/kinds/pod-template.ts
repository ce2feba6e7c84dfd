// What does the server fill in on the Pods of a workload?
import { isObject, type JsonObject } from '../schema/json.ts';
import { eachObject, objectAt, withDefaults } from './member-of.ts';

/** The defaults of core/v1 PodSpec that the real server writes into Deployments, Jobs and CronJobs. */
export function podTemplateDefaults(template: JsonObject, restartPolicy: string | undefined): JsonObject {
  const given = objectAt(template, 'spec');
  // Two names of one thing: the newer one counts.
  const account = given.serviceAccountName ?? given.serviceAccount;
  const named = account === undefined ? given : { ...given, serviceAccount: account, serviceAccountName: account };
  const spec = withDefaults(named, {
    restartPolicy,
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
  });
  const defaulted: JsonObject = { ...spec };
  for (const list of ['containers', 'initContainers']) {
    if (spec[list] !== undefined) defaulted[list] = eachObject(spec[list], container);
  }
  if (spec.volumes !== undefined) defaulted.volumes = eachObject(spec.volumes, volume);
  return { metadata: {}, ...template, spec: defaulted };
}

function container(given: JsonObject): JsonObject {
  const filled = withDefaults(given, {
    imagePullPolicy: pullPolicy(given.image),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    resources: {},
  });
  const defaulted: JsonObject = { ...filled };
  if (filled.ports !== undefined)
    defaulted.ports = eachObject(filled.ports, (port) => withDefaults(port, { protocol: 'TCP' }));
  if (filled.env !== undefined) defaulted.env = eachObject(filled.env, variable);
  for (const probe of ['livenessProbe', 'readinessProbe', 'startupProbe']) {
    if (isObject(filled[probe])) defaulted[probe] = probeDefaults(filled[probe]);
  }
  return defaulted;
}

function variable(given: JsonObject): JsonObject {
  const valueFrom = objectAt(given, 'valueFrom');
  if (!isObject(valueFrom.fieldRef)) return given;
  return { ...given, valueFrom: { ...valueFrom, fieldRef: withDefaults(valueFrom.fieldRef, { apiVersion: 'v1' }) } };
}

function pullPolicy(image: unknown): string {
  const name = String(image ?? '');
  const tag = /:([^:/@]+)$/.exec(name.split('@')[0] ?? '')?.[1];
  return (tag === undefined && !name.includes('@')) || tag === 'latest' ? 'Always' : 'IfNotPresent';
}

function probeDefaults(probe: JsonObject): JsonObject {
  const http = isObject(probe.httpGet) ? { httpGet: withDefaults(probe.httpGet, { path: '/', scheme: 'HTTP' }) } : {};
  const timing = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  return withDefaults({ ...probe, ...http }, timing);
}

function volume(given: JsonObject): JsonObject {
  const defaulted: JsonObject = { ...given };
  for (const source of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    if (isObject(given[source])) defaulted[source] = withDefaults(given[source], { defaultMode: 420 });
  }
  return defaulted;
}

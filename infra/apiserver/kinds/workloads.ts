// What does the server fill in on, and ask of, workloads and what goes with them? Nothing here runs them.
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { type JsonObject, sameJson } from '../schema/json.ts';
import { invalid, notSupported, required } from '../schema/refusals.ts';
import { listAt, objectAt, withDefaults } from './member-of.ts';
import { podTemplateDefaults } from './pod-template.ts';

export const deployment: Strategy = {
  prepare(object) {
    const spec = withDefaults(object.spec, {
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: { type: 'RollingUpdate' },
    });
    const strategy = objectAt(spec, 'strategy');
    const rollingUpdate = withDefaults(strategy.rollingUpdate, { maxUnavailable: '25%', maxSurge: '25%' });
    return withMember(object, 'spec', {
      ...spec,
      strategy: strategy.type === 'RollingUpdate' ? { ...strategy, rollingUpdate } : strategy,
      ...template(spec, 'Always'),
    });
  },
  check: (object, old) => [
    ...atLeast(object, 'replicas', 0),
    ...templateMatchesSelector(object),
    ...unchanged(object, old, 'selector'),
  ],
};

export const job: Strategy = {
  prepare: (object, old) => withMember(object, 'spec', jobSpec(objectAt(object, 'spec'), object, old)),
  check: (object, old) => unchanged(object, old, 'selector'),
};

export const cronJob: Strategy = {
  prepare(object) {
    const spec = withDefaults(object.spec, {
      concurrencyPolicy: 'Allow',
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
    });
    const jobTemplate = objectAt(spec, 'jobTemplate');
    const metadata = { metadata: jobTemplate.metadata ?? {} };
    const inner = { ...objectAt(jobTemplate, 'spec'), ...template(objectAt(jobTemplate, 'spec'), undefined) };
    return withMember(object, 'spec', { ...spec, jobTemplate: { ...metadata, spec: inner } });
  },
  check(object) {
    const { schedule } = objectAt(object, 'spec');
    if (schedule === undefined || schedule === '') return [required('spec.schedule')];
    const fields = String(schedule)
      .replace(/^(CRON_)?TZ=\S+\s+/, '')
      .trim();
    if (/^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)$/.test(fields)) return [];
    if (fields.split(/\s+/).length === 5) return [];
    const found = `expected exactly 5 fields, found ${fields.split(/\s+/).length}: [${fields}]`;
    return [invalid('spec.schedule', schedule, found)];
  },
};

/** A binding's role is what it is: another role needs another binding. */
export const roleBinding: Strategy = {
  prepare(object) {
    const roleRef = withDefaults(object.roleRef, { apiGroup: 'rbac.authorization.k8s.io' });
    const subjects = listAt(object, 'subjects').map((subject) => {
      const { kind } = subject as JsonObject;
      return kind === 'User' || kind === 'Group'
        ? withDefaults(subject, { apiGroup: 'rbac.authorization.k8s.io' })
        : subject;
    });
    return { ...object, roleRef, ...(subjects.length > 0 && { subjects }) };
  },
  check(object, old) {
    const { kind } = objectAt(object, 'roleRef');
    if (kind !== 'Role' && kind !== 'ClusterRole') return [notSupported('roleRef.kind', kind, ['Role', 'ClusterRole'])];
    if (old === undefined || sameJson(object.roleRef, old.roleRef)) return [];
    return [invalid('roleRef', object.roleRef, 'cannot change roleRef')];
  },
};

export const podDisruptionBudget: Strategy = {
  check(object) {
    const { minAvailable, maxUnavailable } = objectAt(object, 'spec');
    if (minAvailable === undefined || maxUnavailable === undefined) return [];
    return [invalid('spec', object.spec, 'minAvailable and maxUnavailable cannot be both set')];
  },
};

export const lease: Strategy = {
  check(object) {
    const { leaseDurationSeconds, leaseTransitions } = objectAt(object, 'spec');
    const causes: Cause[] = [];
    if (typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0) {
      causes.push(invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
    }
    if (typeof leaseTransitions === 'number' && leaseTransitions < 0) {
      causes.push(invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0'));
    }
    return causes;
  },
};

function jobSpec(spec: JsonObject, object: KubeObject, old: KubeObject | undefined): JsonObject {
  const uid = object.metadata.uid ?? '';
  const generated = { 'batch.kubernetes.io/controller-uid': uid, 'controller-uid': uid };
  const own = { 'batch.kubernetes.io/job-name': object.metadata.name ?? '', 'job-name': object.metadata.name ?? '' };
  const defaulted = withDefaults(spec, {
    parallelism: 1,
    completions: spec.parallelism === undefined ? 1 : undefined,
    backoffLimit: 6,
    completionMode: 'NonIndexed',
    suspend: false,
    manualSelector: false,
    podReplacementPolicy: 'TerminatingOrFailed',
    selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
  });
  const complete: JsonObject = { ...defaulted, ...template(defaulted, undefined) };
  if (old !== undefined || spec.manualSelector === true || uid === '') return complete;
  const podTemplate = objectAt(complete, 'template');
  const metadata = objectAt(podTemplate, 'metadata');
  const labels = { ...objectAt(metadata, 'labels'), ...generated, ...own };
  return { ...complete, template: { ...podTemplate, metadata: { ...metadata, labels } } };
}

function template(spec: JsonObject, restartPolicy: string | undefined): JsonObject {
  return spec.template === undefined
    ? {}
    : { template: podTemplateDefaults(objectAt(spec, 'template'), restartPolicy) };
}

function templateMatchesSelector(object: KubeObject): Cause[] {
  const labels = objectAt(objectAt(objectAt(object.spec, 'template'), 'metadata'), 'labels');
  const wanted = objectAt(objectAt(object.spec, 'selector'), 'matchLabels');
  if (Object.entries(wanted).every(([key, value]) => labels[key] === value)) return [];
  return [invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`')];
}

function atLeast(object: KubeObject, member: string, least: number): Cause[] {
  const value = objectAt(object, 'spec')[member];
  if (typeof value !== 'number' || value >= least) return [];
  return [invalid(`spec.${member}`, value, `must be greater than or equal to ${least}`)];
}

function unchanged(object: KubeObject, old: KubeObject | undefined, member: string): Cause[] {
  const [now, before] = [objectAt(object, 'spec')[member], objectAt(old, 'spec')[member]];
  if (old === undefined || sameJson(now, before)) return [];
  return [invalid(`spec.${member}`, now, 'field is immutable')];
}

// What may a CustomResourceDefinition be, and what does the server say about it?
import { jsonPath as compileJsonPath } from '../codec/json-path.ts';
import { crdColumns } from '../codec/table.ts';
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { type CrdSpec, type CrdVersion, crdSpec } from '../resources/custom-resources.ts';
import type { Cause } from '../schema/cause.ts';
import { forbidden, invalid, notSupported, required } from '../schema/field-errors.ts';
import { isObject } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { nodesOf } from '../schema/schema-nodes.ts';
import { createStructural } from '../schema/structural.ts';
import { eachObject, objectAt, withDefaults } from './member-of.ts';
import { structuralCauses } from './structural-rules.ts';

/** Holds a CRD until its objects are gone. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

export const customResourceDefinition: Strategy = {
  applyDefaults(object) {
    const names = objectAt(object.spec, 'names');
    const kind = String(names.kind ?? '');
    const spec = withDefaults(object.spec, { conversion: { strategy: 'None' } });
    const complete = withDefaults(names, { singular: kind.toLowerCase(), listKind: `${kind}List` });
    const versions = eachObject(spec.versions, (version) => ({ ...version }));
    return withMember(object, 'spec', { ...spec, names: complete, ...(versions !== undefined && { versions }) });
  },
  validate: (object, old) => [...identity(object, old), ...versions(crdSpec(object)), ...unsupported(crdSpec(object))],
  updateStatus: accept,
  beforeDelete: held,
};

function identity({ metadata, spec }: KubeObject, old: KubeObject | undefined): Cause[] {
  const { group, names, scope } = spec as CrdSpec;
  const causes: Cause[] = [];
  if (scope !== 'Namespaced' && scope !== 'Cluster') {
    causes.push(notSupported('spec.scope', scope, ['Cluster', 'Namespaced']));
  }
  const name = `${names.plural}.${group}`;
  if (metadata.name !== name)
    causes.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  if (!group.includes('.')) causes.push(invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(names.plural)) {
    causes.push(
      invalid('spec.names.plural', names.plural, 'a DNS-1035 label must consist of lower case alphanumeric characters'),
    );
  }
  if (old === undefined) return causes;
  const before = crdSpec(old);
  if (before.scope !== scope) causes.push(invalid('spec.scope', scope, 'field is immutable'));
  if (before.names.kind !== names.kind) causes.push(invalid('spec.names.kind', names.kind, 'field is immutable'));
  return causes;
}

function versions({ versions }: CrdSpec): Cause[] {
  const storage = versions.filter(({ storage }) => storage === true);
  const causes = versions.flatMap((version, i) => schemaOf(version, `spec.versions[${i}]`));
  if (storage.length !== 1) {
    causes.push(
      invalid(
        'spec.versions',
        versions.map(({ name }) => name),
        'must have exactly one version marked as storage version',
      ),
    );
  }
  return causes;
}

function schemaOf(version: CrdVersion, path: string): Cause[] {
  const schema = version.schema?.openAPIV3Schema;
  const at = `${path}.schema.openAPIV3Schema`;
  if (schema === undefined) return [required(at, 'schemas are required')];
  if (schema.type !== 'object') {
    return [
      schema.type === undefined
        ? required(`${at}.type`, 'must not be empty at the root')
        : notSupported(`${at}.type`, schema.type, ['object']),
    ];
  }
  const shape = structuralCauses(schema, at);
  if (shape.length > 0) return shape;
  return [
    ...attempt(() => createStructural(schema), at, undefined),
    ...attempt(() => crdColumns(version.additionalPrinterColumns), `${path}.additionalPrinterColumns`, undefined),
    ...(version.selectableFields ?? []).flatMap(({ jsonPath }, i) => {
      return attempt(() => compileJsonPath(jsonPath), `${path}.selectableFields[${i}].jsonPath`, jsonPath);
    }),
  ];
}

function attempt(compile: () => unknown, path: string, value: unknown): Cause[] {
  try {
    compile();
    return [];
  } catch (error) {
    const { field, message } = error as Error & { field?: string };
    return [
      invalid(
        field === undefined ? path : `${path}${field.startsWith('[') ? '' : '.'}${field}`,
        value ?? null,
        message,
      ),
    ];
  }
}

/** What this cluster does not do is said when the CRD is applied, not when its objects misbehave. */
function unsupported({ conversion, preserveUnknownFields, versions }: CrdSpec): Cause[] {
  const causes = versions.flatMap(({ schema }, i) =>
    embedded(schema?.openAPIV3Schema, `spec.versions[${i}].schema.openAPIV3Schema`),
  );
  if (conversion?.strategy === 'Webhook') {
    causes.push(
      forbidden(
        'spec.conversion.strategy',
        'the embedded cluster has no conversion webhooks; use strategy None, or a real cluster',
      ),
    );
  }
  if (preserveUnknownFields === true) {
    causes.push(
      invalid(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  for (const [i, { subresources }] of versions.entries()) {
    if (subresources?.scale === undefined) continue;
    const why = 'the embedded cluster has no scale subresource for custom resources; use a real cluster';
    causes.push(forbidden(`spec.versions[${i}].subresources.scale`, why));
  }
  return causes;
}

function embedded(schema: Schema = {}, path: string): Cause[] {
  const found = nodesOf(schema).filter(({ node }) => node['x-kubernetes-embedded-resource'] === true);
  const why = 'this API server has no embedded resources; use x-kubernetes-preserve-unknown-fields, or a real cluster';
  return found.map(({ path: below }) => forbidden([path, ...below, 'x-kubernetes-embedded-resource'].join('.'), why));
}

/** A CRD that is being deleted stays until its objects are gone. */
function held(object: KubeObject): KubeObject {
  const { finalizers = [] } = object.metadata;
  return finalizers.includes(crdFinalizer) ? object : withMeta(object, { finalizers: [...finalizers, crdFinalizer] });
}

/** Names are accepted and the kind is served at once: a CRD is established when its write is done. */
function accept(object: KubeObject, now: string): KubeObject {
  const { names, versions } = crdSpec(object);
  const status = objectAt(object, 'status');
  const known = Array.isArray(status.storedVersions) ? status.storedVersions : [];
  const stored = versions.find(({ storage }) => storage)?.name;
  return withMember(object, 'status', {
    acceptedNames: names,
    conditions: [
      condition(status, 'NamesAccepted', 'NoConflicts', 'no conflicts found', now),
      condition(status, 'Established', 'InitialNamesAccepted', 'the initial names have been accepted', now),
    ],
    storedVersions: stored === undefined || known.includes(stored) ? known : [...known, stored],
  });
}

function condition(status: Record<string, unknown>, type: string, reason: string, message: string, now: string) {
  const conditions = Array.isArray(status.conditions) ? status.conditions : [];
  const before = conditions.filter(isObject).find((one) => one.type === type && one.status === 'True');
  return before ?? { lastTransitionTime: now, message, reason, status: 'True', type };
}

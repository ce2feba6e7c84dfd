// CustomResourceDefinitions: what one must be to be served, and what the server says about it.
import { jsonPath as compileJsonPath } from '../codec/json-path.ts';
import { crdColumns, type PrinterColumn } from '../codec/table.ts';
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { type Cause, forbidden, invalid, notSupported, required } from '../schema/field-errors.ts';
import { isObject, objectAt, withDefaults } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { nodesOf } from '../schema/schema-nodes.ts';
import { createStructural } from '../schema/structural.ts';

export type CrdVersion = {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema?: { readonly openAPIV3Schema?: Schema };
  readonly subresources?: { readonly status?: object; readonly scale?: object };
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
  readonly selectableFields?: ReadonlyArray<{ readonly jsonPath: string }>;
};

export type CrdSpec = {
  readonly group: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly names: {
    readonly plural: string;
    readonly singular?: string;
    readonly kind: string;
    readonly listKind?: string;
    readonly shortNames?: readonly string[];
    readonly categories?: readonly string[];
  };
  readonly versions: readonly CrdVersion[];
  readonly conversion?: { readonly strategy?: string };
  readonly preserveUnknownFields?: boolean;
};

/** Validated before it was stored, so its shape is known. */
export function crdSpec(crd: KubeObject): CrdSpec {
  return crd.spec as CrdSpec;
}

/** Holds a CRD until its objects are gone. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io';

export const customResourceDefinition: Strategy = {
  applyDefaults(object) {
    const names = objectAt(object.spec, 'names');
    const kind = String(names.kind ?? '');
    const spec = withDefaults(object.spec, { conversion: { strategy: 'None' } });
    const complete = withDefaults(names, { singular: kind.toLowerCase(), listKind: `${kind}List` });
    return withMember(object, 'spec', { ...spec, names: complete });
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
  if (metadata.name !== `${names.plural}.${group}`) {
    causes.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
  if (!group.includes('.')) causes.push(invalid('spec.group', group, 'should be a domain with at least one dot'));
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(names.plural)) {
    const why = 'a DNS-1035 label must consist of lower case alphanumeric characters';
    causes.push(invalid('spec.names.plural', names.plural, why));
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
    const names = versions.map(({ name }) => name);
    causes.push(invalid('spec.versions', names, 'must have exactly one version marked as storage version'));
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
  const shape = typelessCauses(schema, at);
  if (shape.length > 0) return shape;
  return [
    ...attempt(() => createStructural(schema), at, undefined),
    ...attempt(() => crdColumns(version.additionalPrinterColumns), `${path}.additionalPrinterColumns`, undefined),
    ...(version.selectableFields ?? []).flatMap(({ jsonPath }, i) => {
      return attempt(() => compileJsonPath(jsonPath), `${path}.selectableFields[${i}].jsonPath`, jsonPath);
    }),
  ];
}

const types = ['object', 'array', 'string', 'integer', 'number', 'boolean'];

/** A schema is structural when every part below its root says what type it has; alternatives need not repeat it. */
function typelessCauses(root: Schema, at: string): Cause[] {
  return nodesOf(root).flatMap(({ node, path }) => {
    if (path.some((step) => /^(allOf|anyOf|oneOf|not)\b/.test(step))) return [];
    const field = [at, ...path].join('.');
    if (node.properties !== undefined && typeof node.additionalProperties === 'object') {
      return [forbidden(field, 'additionalProperties and properties are mutual exclusive')];
    }
    const isFree = node['x-kubernetes-int-or-string'] ?? node['x-kubernetes-preserve-unknown-fields'] ?? false;
    if (node.type === undefined && isFree) return [];
    const what = path.at(-1) === 'items' ? 'array items' : 'object fields';
    if (node.type === undefined) return [required(`${field}.type`, `must not be empty for specified ${what}`)];
    return types.includes(node.type) ? [] : [invalid(`${field}.type`, node.type, `must be one of ${types.join(', ')}`)];
  });
}

function attempt(compile: () => unknown, path: string, value: unknown): Cause[] {
  try {
    compile();
    return [];
  } catch (error) {
    const { field, message } = error as Error & { field?: string }; // a SchemaError names its place
    const at = field === undefined ? path : `${path}${field.startsWith('[') ? '' : '.'}${field}`;
    return [invalid(at, value ?? null, message)];
  }
}

/** Features that this API server lacks are refused when the CRD is applied, not when its objects misbehave. */
function unsupported({ conversion, preserveUnknownFields, versions }: CrdSpec): Cause[] {
  const instead =
    'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
  const noConversion = 'this API server has no conversion webhooks; use strategy None, or a real cluster';
  const noScale = 'this API server has no scale subresource for custom resources; use a real cluster';
  return [
    ...(conversion?.strategy === 'Webhook' ? [forbidden('spec.conversion.strategy', noConversion)] : []),
    ...(preserveUnknownFields === true ? [invalid('spec.preserveUnknownFields', true, instead)] : []),
    ...versions.flatMap(({ schema, subresources }, i) => [
      ...embedded(schema?.openAPIV3Schema, `spec.versions[${i}].schema.openAPIV3Schema`),
      ...(subresources?.scale ? [forbidden(`spec.versions[${i}].subresources.scale`, noScale)] : []),
    ]),
  ];
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

/** Names are accepted and the kind is served immediately: a CRD is established when its write is done. */
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

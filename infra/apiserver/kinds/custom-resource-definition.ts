// CustomResourceDefinitions: the rules for one to be served, and the conditions that the server reports.
import { jsonPath as compileJsonPath } from '../codec/json-path.ts';
import { crdColumns, type PrinterColumn } from '../codec/table.ts';
import { type KubeObject, withMember, withMeta } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { type Cause, compileCauses, forbidden, invalid, notSupported, required } from '../schema/field-errors.ts';
import { objectAt, withDefaults } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
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
};

/** The spec was validated before it was stored, so its shape is known. */
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
  const scopes = ['Cluster', 'Namespaced'];
  if (!scopes.includes(scope)) causes.push(notSupported('spec.scope', scope, scopes));
  else if (old && crdSpec(old).scope !== scope) causes.push(invalid('spec.scope', scope, 'field is immutable'));
  if (metadata.name !== `${names.plural}.${group}`) {
    causes.push(invalid('metadata.name', metadata.name, 'must be spec.names.plural+"."+spec.group'));
  }
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
  if (schema.type !== 'object') return [notSupported(`${at}.type`, schema.type, ['object'])];
  return [
    ...compileCauses(() => createStructural(schema), at, undefined),
    ...compileCauses(() => crdColumns(version.additionalPrinterColumns), `${path}.additionalPrinterColumns`, undefined),
    ...(version.selectableFields ?? []).flatMap(({ jsonPath }, i) => {
      return compileCauses(() => compileJsonPath(jsonPath), `${path}.selectableFields[${i}].jsonPath`, jsonPath);
    }),
  ];
}

/** Features that this API server lacks are refused when the CRD is applied, not when its objects misbehave. */
function unsupported({ conversion, versions }: CrdSpec): Cause[] {
  const noConversion = 'this API server has no conversion webhooks; use strategy None, or a real cluster';
  const noScale = 'this API server has no scale subresource for custom resources; use a real cluster';
  return [
    ...(conversion?.strategy === 'Webhook' ? [forbidden('spec.conversion.strategy', noConversion)] : []),
    ...versions.flatMap(({ subresources }, i) => {
      return subresources?.scale ? [forbidden(`spec.versions[${i}].subresources.scale`, noScale)] : [];
    }),
  ];
}

/** A CRD that is being deleted stays until its objects are gone. */
function held(object: KubeObject): KubeObject {
  const { finalizers = [] } = object.metadata;
  return finalizers.includes(crdFinalizer) ? object : withMeta(object, { finalizers: [...finalizers, crdFinalizer] });
}

/** Names are accepted and the kind is served immediately: a CRD is established when its write is done. */
function accept(object: KubeObject, now: string): KubeObject {
  const { names, versions } = crdSpec(object);
  const { conditions, storedVersions } = objectAt(object, 'status');
  const known = Array.isArray(storedVersions) ? storedVersions : [];
  const stored = versions.find(({ storage }) => storage)?.name;
  const met = { lastTransitionTime: now, status: 'True' };
  return withMember(object, 'status', {
    acceptedNames: names,
    conditions: conditions ?? [
      { ...met, message: 'no conflicts found', reason: 'NoConflicts', type: 'NamesAccepted' },
      { ...met, message: 'the initial names have been accepted', reason: 'InitialNamesAccepted', type: 'Established' },
    ],
    storedVersions: stored === undefined || known.includes(stored) ? known : [...known, stored],
  });
}

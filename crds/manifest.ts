// The CustomResourceDefinition of a kind.
import type { Kind, PrinterColumn } from './kinds.ts';
import type { Validation } from './rule.ts';
import { type StructuralSchema, toStructural } from './structural.ts';

export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Namespaced';
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames: readonly string[];
      readonly categories: readonly string[];
    };
    readonly versions: readonly [CustomResourceVersion];
  };
}

interface CustomResourceVersion {
  readonly name: string;
  readonly served: true;
  readonly storage: true;
  readonly subresources: { readonly status: Readonly<Record<string, never>> };
  readonly additionalPrinterColumns: readonly PrinterColumn[];
  readonly selectableFields?: ReadonlyArray<{ readonly jsonPath: string }>;
  readonly schema: { readonly openAPIV3Schema: RootSchema };
}

/** The API server checks `apiVersion`, `kind` and `metadata` itself, so they need no bounds here. */
export interface RootSchema {
  readonly type: 'object';
  readonly description: string;
  readonly required: readonly ['spec'];
  readonly properties: {
    readonly apiVersion: { readonly type: 'string'; readonly description: string };
    readonly kind: { readonly type: 'string'; readonly description: string };
    readonly metadata: { readonly type: 'object'; readonly properties: { readonly name: { readonly type: 'string' } } };
    readonly spec: StructuralSchema;
    readonly status: StructuralSchema;
  };
  readonly 'x-kubernetes-validations'?: readonly Validation[];
}

/** The definition to apply. Throws where the kind's schema is not structural, undescribed or unbounded. */
export function toManifest(kind: Kind): CustomResourceDefinition {
  const { plural, singular, shortNames, categories } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular, shortNames, categories },
      versions: [toVersion(kind)],
    },
  };
}

function toVersion(kind: Kind): CustomResourceVersion {
  const fields = kind.selectableFields.map((jsonPath) => ({ jsonPath }));
  return {
    name: kind.version,
    served: true,
    storage: true,
    subresources: { status: {} },
    additionalPrinterColumns: kind.columns,
    ...(fields.length > 0 && { selectableFields: fields }),
    schema: { openAPIV3Schema: toRootSchema(kind) },
  };
}

/** The only CEL at the root is about the name: a rule there that a new version tightens would freeze labels, status and finalizers. */
function toRootSchema(kind: Kind): RootSchema {
  const { nameRule } = kind;
  return {
    type: 'object',
    description: kind.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: `\`${kind.apiVersion}\`.` },
      kind: { type: 'string', description: `\`${kind.kind}\`.` },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: toStructural(kind.spec.describe('What is wanted.'), 'spec'),
      status: toStructural(kind.status.describe('What was observed.'), 'status'),
    },
    ...(nameRule !== undefined && {
      'x-kubernetes-validations': [{ rule: nameRule.cel, message: nameRule.message, fieldPath: '.metadata.name' }],
    }),
  };
}

// The CustomResourceDefinition of a kind.

import type { Kind } from '../kinds/kinds.ts';
import { CATEGORY } from '../names/group.ts';
import { toStructural } from './structural-schema.ts';

/**
 * The definition to apply. Throws where the kind's schema is not structural, or a field has no description or no bound.
 */
export function toManifest(kind: Kind) {
  const { plural, singular, shortNames } = kind;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: 'Namespaced',
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular,
        shortNames,
        categories: [CATEGORY],
      },
      versions: [toVersion(kind)] as const,
    },
  };
}

function toVersion(kind: Kind) {
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

/**
 * The API server checks `apiVersion`, `kind` and `metadata` itself. The only CEL at the root is about the name: a rule
 * there that a new version tightens would freeze labels, status and finalizers.
 */
function toRootSchema(kind: Kind) {
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

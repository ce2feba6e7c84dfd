// The custom kind of the kubectl cases.

const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['color'],
      properties: {
        color: { type: 'string', enum: ['red', 'green', 'blue'], description: 'The paint.' },
        size: { type: 'integer', minimum: 1, maximum: 10, default: 3 },
        alias: { type: 'string', maxLength: 20, pattern: '^[a-z]+$' },
        tags: { type: 'array', maxItems: 8, items: { type: 'string', maxLength: 20 } },
      },
      'x-kubernetes-validations': [
        { rule: "self.color != 'blue' || self.size > 1", message: 'blue widgets are bigger than one' },
        { rule: 'self.color == oldSelf.color', message: 'color is immutable' },
      ],
    },
    status: {
      type: 'object',
      properties: {
        phase: { type: 'string' },
        conditions: {
          type: 'array',
          items: {
            type: 'object',
            required: ['type', 'status'],
            properties: { type: { type: 'string' }, status: { type: 'string' } },
          },
        },
      },
    },
  },
};

/** A kind with a status, printer columns, a short name, a category, a selectable field, a default, bounds and rules. */
export const widgetDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.kubectl.example.com' },
  spec: {
    group: 'kubectl.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], categories: ['toys'] },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        subresources: { status: {} },
        selectableFields: [{ jsonPath: '.spec.color' }],
        additionalPrinterColumns: [
          { name: 'Color', type: 'string', jsonPath: '.spec.color' },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Size', type: 'integer', jsonPath: '.spec.size', priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
        schema: { openAPIV3Schema: schema },
      },
    ],
  },
};

export const group = 'kubectl.example.com';

export function widget(name: string, spec: object = { color: 'red' }, metadata: object = {}): object {
  return { apiVersion: `${group}/v1alpha1`, kind: 'Widget', metadata: { name, ...metadata }, spec };
}

export function configMap(name: string, data: object = {}, metadata: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

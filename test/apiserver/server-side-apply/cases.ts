// Sequences of writes that show what server-side apply does.
import type { JsonObject } from '../../../infra/apiserver/schema/json.ts';
import type { Schema } from '../../../infra/apiserver/schema/schema.ts';

/** One write by a manager: a server-side apply (forced, as ours always is), a creation, or a merge patch. */
export type Step = {
  readonly by: string;
  readonly apply?: JsonObject;
  readonly post?: JsonObject;
  readonly merge?: JsonObject;
  readonly subresource?: 'status';
};

export type ApplyCase = {
  readonly name: string;
  /** Which kind: its folder, its apiVersion and kind; `Widget` is the custom one below. */
  readonly of: keyof typeof applyKinds;
  readonly steps: readonly Step[];
};

/** What the API server says to one step: the object without what it alone decides, or that it refuses. */
export type StepAnswer = JsonObject | 'refused';

const text = { type: 'string' } as const;

export const widgetSchema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        a: text,
        b: text,
        n: { type: 'integer' },
        defaulted: { type: 'string', default: 'd' },
        plain: { type: 'array', items: text },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        keyed: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name', 'port'],
          items: {
            type: 'object',
            required: ['name'],
            properties: {
              name: text,
              port: { type: 'integer', default: 80 },
              value: text,
              more: { type: 'object', properties: { x: text, y: text } },
            },
          },
        },
        map: { type: 'object', additionalProperties: text },
        whole: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { x: text, y: text } },
        any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        deep: { type: 'object', properties: { inner: { type: 'object', properties: { x: text, y: text } } } },
      },
    },
    status: { type: 'object', properties: { state: text, count: { type: 'integer' } } },
  },
};

/** The CRD that makes widgets. */
export const widgetDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.sample.gateway-operator.dev' },
  spec: {
    group: 'sample.gateway-operator.dev',
    scope: 'Namespaced',
    names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: widgetSchema },
      },
    ],
  },
};

export const applyKinds = {
  Widget: {
    apiVersion: 'sample.gateway-operator.dev/v1',
    kind: 'Widget',
    path: '/apis/sample.gateway-operator.dev/v1/namespaces/default/widgets',
  },
  ConfigMap: { apiVersion: 'v1', kind: 'ConfigMap', path: '/api/v1/namespaces/default/configmaps' },
  Service: { apiVersion: 'v1', kind: 'Service', path: '/api/v1/namespaces/default/services' },
  Deployment: { apiVersion: 'apps/v1', kind: 'Deployment', path: '/apis/apps/v1/namespaces/default/deployments' },
} as const;

const spec = (value: JsonObject) => ({ spec: value });
const container = (value: JsonObject) => ({
  spec: {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [value] } },
  },
});

export const applyCases: readonly ApplyCase[] = [
  { name: 'one manager creates', of: 'Widget', steps: [{ by: 'me', apply: spec({ a: '1', map: { x: '1' } }) }] },
  {
    name: 'a field that is left out goes',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '2', map: { x: '1', y: '2' }, set: ['a', 'b'], plain: ['p'] }) },
      { by: 'me', apply: spec({ a: '1', map: { y: '2' }, set: ['b'] }) },
      { by: 'me', apply: spec({ a: '1' }) },
    ],
  },
  {
    name: 'everything that is left out goes',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', map: { x: '1' } }) },
      { by: 'me', apply: spec({}) },
    ],
  },
  {
    name: 'the same once more changes nothing',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1' }) },
      { by: 'me', apply: spec({ a: '1' }) },
    ],
  },
  {
    name: 'two managers share a value',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '1' }) },
      { by: 'you', apply: spec({ a: '1' }) },
      { by: 'me', apply: spec({ b: '1' }) },
      { by: 'you', apply: {} },
    ],
  },
  {
    name: 'another value is taken over',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '1' }) },
      { by: 'you', apply: spec({ a: '2' }) },
      { by: 'you', apply: spec({ a: '2', b: '2' }) },
    ],
  },
  {
    name: 'a field is taken over and taken back',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '1' }) },
      { by: 'you', apply: spec({ a: '2' }) },
      { by: 'me', apply: spec({ a: '1', b: '1' }) },
      { by: 'me', apply: spec({ b: '1' }) },
    ],
  },
  {
    name: 'several managers lose a value',
    of: 'Widget',
    steps: [
      { by: 'zed', apply: spec({ a: '1', keyed: [{ name: 'k', value: '1' }] }) },
      { by: 'ann', apply: spec({ b: '1', set: ['s'] }) },
      { by: 'bob', merge: spec({ n: 1 }) },
      { by: 'me', apply: spec({ a: '2', b: '2', n: 2, set: ['s', 't'], keyed: [{ name: 'k', value: '2' }] }) },
    ],
  },
  {
    name: 'an update between two applies is overwritten',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '1', keyed: [{ name: 'k', value: '1' }] }) },
      { by: 'edit', merge: spec({ a: '2' }) },
      { by: 'me', apply: spec({ a: '1', b: '1', keyed: [{ name: 'k', value: '1' }] }) },
      { by: 'me', apply: spec({ b: '1', keyed: [{ name: 'k', value: '1' }] }) },
    ],
  },
  {
    name: 'an update may remove what was applied',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ a: '1', b: '1', map: { x: '1' } }) },
      { by: 'edit', merge: spec({ a: null, map: null }) },
    ],
  },
  {
    name: 'an apply to what was created by another means',
    of: 'Widget',
    steps: [
      {
        by: 'create',
        post: {
          metadata: { labels: { l: '1' } },
          ...spec({ a: '1', map: { x: '1' }, keyed: [{ name: 'k', more: { x: '1' } }], set: ['s'], plain: ['p'] }),
        },
      },
      { by: 'create', merge: spec({ b: '1', a: '3' }) },
      { by: 'me', apply: { metadata: { labels: { l: '2' } }, ...spec({ a: '1' }) } },
      { by: 'me', apply: { metadata: { labels: { l: '2' } }, ...spec({ a: '1' }) } },
    ],
  },
  {
    name: 'list map elements are merged by their keys',
    of: 'Widget',
    steps: [
      {
        by: 'me',
        apply: spec({
          keyed: [
            { name: 'a', value: '1' },
            { name: 'b', port: 8080, value: '1' },
          ],
        }),
      },
      {
        by: 'you',
        apply: spec({
          keyed: [
            { name: 'c', value: '1' },
            { name: 'a', more: { x: '1' } },
          ],
        }),
      },
      { by: 'me', apply: spec({ keyed: [{ name: 'b', port: 8080, value: '2' }] }) },
      { by: 'you', apply: spec({ keyed: [{ name: 'a', more: { y: '1' } }] }) },
      { by: 'you', apply: spec({ keyed: [] }) },
    ],
  },
  {
    name: 'the applied order holds, other elements keep their place',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ set: ['a', 'b', 'c', 'd', 'e'] }) },
      { by: 'you', apply: spec({ set: ['d', 'x', 'b'] }) },
      { by: 'zed', apply: spec({ set: ['x', 'y', 'a'] }) },
      { by: 'me', apply: spec({ set: ['e', 'a'] }) },
    ],
  },
  {
    name: 'a plain list and an atomic map are replaced as a whole',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ plain: ['a'], whole: { x: '1' } }) },
      { by: 'you', apply: spec({ plain: ['a', 'b'], whole: { y: '1' } }) },
      { by: 'you', apply: spec({ plain: ['a', 'b'], whole: { y: '1' } }) },
    ],
  },
  {
    name: 'what a schema leaves open is merged by its members',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ any: { x: { y: 1, z: [1, { a: 1 }] }, w: null } }) },
      { by: 'you', apply: spec({ any: { x: { q: 1 } } }) },
      { by: 'me', apply: spec({ any: { x: { y: 1 } } }) },
    ],
  },
  {
    name: 'empty containers',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ map: {}, deep: { inner: {} }, any: {} }) },
      { by: 'me', apply: spec({ map: { a: '1' } }) },
    ],
  },
  {
    name: 'a member of a member that others own stays',
    of: 'Widget',
    steps: [
      { by: 'me', apply: spec({ deep: { inner: { x: '1' } } }) },
      { by: 'you', apply: spec({ deep: { inner: { y: '1' } } }) },
      { by: 'me', apply: {} },
    ],
  },
  {
    name: 'the status is written by its subresource alone',
    of: 'Widget',
    steps: [
      { by: 'me', apply: { ...spec({ a: '1' }), status: { state: 'x' } } },
      { by: 'controller', apply: { status: { state: 'ok' } }, subresource: 'status' },
      { by: 'other', merge: { status: { count: 1 } }, subresource: 'status' },
      { by: 'controller', apply: { status: { count: 2 } }, subresource: 'status' },
      { by: 'me', apply: spec({ b: '1' }) },
    ],
  },
  {
    name: 'labels, annotations and finalizers',
    of: 'Widget',
    steps: [
      {
        by: 'me',
        apply: {
          metadata: {
            labels: { l: '1' },
            annotations: { 'a/b': 'x' },
            finalizers: ['x/one'],
          },
        },
      },
      { by: 'you', apply: { metadata: { labels: { m: '1' }, finalizers: ['x/two'] } } },
      { by: 'me', apply: { metadata: { labels: { l: '1' } } } },
    ],
  },
  { name: 'an unknown field', of: 'Widget', steps: [{ by: 'me', apply: spec({ nope: 1 }) }] },
  { name: 'a wrong type', of: 'Widget', steps: [{ by: 'me', apply: spec({ n: 'x' }) }] },
  { name: 'a list for text', of: 'Widget', steps: [{ by: 'me', apply: spec({ a: ['x'] }) }] },
  { name: 'text for a list', of: 'Widget', steps: [{ by: 'me', apply: spec({ plain: 'x' }) }] },
  { name: 'text for an object', of: 'Widget', steps: [{ by: 'me', apply: spec({ deep: 'x' }) }] },
  { name: 'an element without its key', of: 'Widget', steps: [{ by: 'me', apply: spec({ keyed: [{ value: 'x' }] }) }] },
  {
    name: 'an element twice',
    of: 'Widget',
    steps: [{ by: 'me', apply: spec({ keyed: [{ name: 'x' }, { name: 'x', port: 80 }] }) }],
  },
  { name: 'a value twice in a set', of: 'Widget', steps: [{ by: 'me', apply: spec({ set: ['x', 'x'] }) }] },
  {
    name: 'a config map by two managers',
    of: 'ConfigMap',
    steps: [
      { by: 'me', apply: { data: { a: '1' }, metadata: { labels: { x: 'y' } } } },
      { by: 'you', apply: { data: { b: '2' }, immutable: false } },
      { by: 'edit', merge: { data: { a: '2', c: '3' } } },
      { by: 'me', apply: { data: { a: '1' } } },
      { by: 'me', apply: { data: { b: '2' } } },
      { by: 'you', apply: {} },
    ],
  },
  {
    name: 'ports of a service are keyed by port and protocol',
    of: 'Service',
    steps: [
      { by: 'me', apply: spec({ clusterIP: 'None', selector: { a: 'b' }, ports: [{ name: 'http', port: 80 }] }) },
      { by: 'you', apply: spec({ ports: [{ name: 'dns', port: 80, protocol: 'UDP' }] }) },
      { by: 'you', apply: spec({ ports: [{ name: 'other', port: 80 }] }) },
      { by: 'me', apply: spec({ clusterIP: 'None', ports: [{ name: 'tls', port: 443 }] }) },
    ],
  },
  {
    name: 'containers and their parts',
    of: 'Deployment',
    steps: [
      {
        by: 'me',
        apply: container({
          name: 'c',
          image: 'x:1',
          env: [{ name: 'A', value: '1' }],
          ports: [{ containerPort: 80 }],
          args: ['a'],
          resources: { limits: { cpu: '1' } },
        }),
      },
      {
        by: 'you',
        apply: container({
          name: 'c',
          env: [{ name: 'B', value: '1' }],
        }),
      },
      { by: 'you', apply: { spec: { ...container({ name: 'c', image: 'x:2' }).spec, replicas: 3 } } },
      { by: 'scale', merge: spec({ replicas: 2 }) },
      { by: 'me', apply: container({ name: 'c', image: 'x:2', ports: [{ containerPort: 81 }], args: ['b'] }) },
    ],
  },
  {
    name: 'an unknown field of a core kind',
    of: 'Deployment',
    steps: [{ by: 'me', apply: container({ name: 'c', foo: 1 }) }],
  },
  { name: 'a wrong type in a core kind', of: 'Deployment', steps: [{ by: 'me', apply: spec({ replicas: 'x' }) }] },
];

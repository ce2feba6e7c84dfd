// Reviews of eight kilobytes, as the API server sends them when a person applies one of our objects.
import type { KubeObject } from '#core/ports/cluster.ts';
import { GOOD, modelEntry, objectOf, requestOf } from '../../admission/fixtures.ts';

type Json = Record<string, unknown>;

/** The number of entries of the reviewed instance. */
export const MODELS = ['gpt-4o', 'claude', 'small', 'medium', 'large', 'vision'];

/** The `?timeout=` that the API server adds. */
export const TIMEOUT = '?timeout=5s';

const SIZE = 8192;

/**
 * An update of a key with tags, metadata and a template: the new and the stored object, with status and managed fields.
 */
export function keyReview(): string {
  const spec = {
    ...GOOD.VirtualKey,
    models: MODELS.slice(0, 4),
    tags: ['billing', 'production', 'europe', 'team-payments'],
    metadata: { owner: 'billing@example.com', ticket: 'PLAT-1234' },
    secretTemplate: { name: 'billing-key', labels: { app: 'billing' } },
  };
  return padded((padding) => {
    const object = stored(objectOf('VirtualKey', spec), padding, KEY_STATUS);
    return reviewOf({ ...object, spec: { ...spec, maxBudget: '20' } }, { oldObject: object });
  });
}

/** A new instance with six entries. */
export const instanceReview = (): string =>
  padded((padding) => reviewOf(stored(objectOf('GatewayInstance', instanceSpec()), padding), {}));

/** Fills the review with a description up to eight kilobytes. */
function padded(write: (padding: string) => string): string {
  const left = SIZE - write('').length;
  const per = write('x').length - write('').length;
  const text = write('x'.repeat(Math.max(0, Math.floor(left / per))));
  if (text.length > SIZE || text.length < SIZE - per) throw new Error(`a review of ${text.length} bytes`);
  return text;
}

const condition = (type: string) => ({
  type,
  status: 'True',
  reason: 'Ready',
  message: 'The key works.',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration: 3,
});

const KEY_STATUS = {
  observedGeneration: 3,
  conditions: ['Ready', 'ModelsReady'].map(condition),
  keySecretRef: 'billing-key',
  keyID: 'key_0123456789abcdef',
  currentSpend: '1.234567891',
  isActive: true,
  budgetResetDate: '2026-02-01T00:00:00Z',
  lastSyncTime: '2026-01-01T00:00:00Z',
};

export const instanceSpec = (): Json => ({ ...GOOD.GatewayInstance, models: MODELS.map((name) => modelEntry(name)) });

const OPERATOR = { username: 'oidc:ada@example.com', uid: '1', groups: ['platform', 'system:authenticated'] };

function reviewOf(object: KubeObject, more: Json): string {
  return JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: requestOf(object, { userInfo: OPERATOR, ...more }),
  });
}

/**
 * The object with the additions of `kubectl apply` and the API server: the file as an annotation, and managed fields.
 */
function stored(object: KubeObject, description: string, status?: Json): KubeObject {
  const annotations = {
    'kubectl.kubernetes.io/last-applied-configuration': `${JSON.stringify(object)}\n`,
    'example.com/description': description,
  };
  const managed = (manager: string, fields: Json) => ({
    manager,
    operation: 'Update',
    apiVersion: object.apiVersion,
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsOf(fields),
  });
  const managedFields = [
    managed('kubectl-client-side-apply', { metadata: { annotations }, spec: object.spec }),
    ...(status === undefined ? [] : [managed('gateway-operator', { status })]),
  ];
  const metadata = { ...object.metadata, annotations, managedFields };
  return { ...object, metadata, ...(status !== undefined && { status }) };
}

function fieldsOf(value: unknown): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, child]) => [`f:${name}`, fieldsOf(child)]));
}

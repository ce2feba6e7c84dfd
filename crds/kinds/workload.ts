// `spec.workload` of an instance: where and how its gateway runs.
import * as z from 'zod';
import { listBy, mapOf, text, withRule } from '../validation/rule.ts';
import { Address, Annotations, choice, integer, Labels, matching, Name, SecretKeyName } from './shared-fields.ts';

const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/u;

const keyOf = (what: string) =>
  z
    .object({
      name: Name.describe(`Name of the ${what}, in the namespace of the instance.`),
      key: SecretKeyName.describe('Name of the key.'),
      optional: z.boolean().optional().describe('Whether the key may be missing. Default: false.'),
    })
    .optional()
    .describe(`A key of a ${what}.`);

const EnvVar = withRule(
  z.object({
    name: matching(
      /^[-._a-zA-Z][-._a-zA-Z0-9]*$/u,
      256,
      'must consist of letters, digits, `-`, `_` and `.`, and not begin with a digit',
    ).describe('Name of the variable.'),
    value: text(32_768).optional().describe('Its value.'),
    valueFrom: withRule(z.object({ secretKeyRef: keyOf('Secret'), configMapKeyRef: keyOf('ConfigMap') }), {
      id: 'OneValueSource',
      cel: 'has(self.secretKeyRef) != has(self.configMapKeyRef)',
      isMet: (self) => (self.secretKeyRef === undefined) !== (self.configMapKeyRef === undefined),
      message: 'must have exactly one source; set secretKeyRef or configMapKeyRef, and remove the other',
    })
      .optional()
      .describe('Where the value comes from; in place of `value`.'),
  }),
  {
    id: 'OneValue',
    cel: '!(has(self.value) && has(self.valueFrom))',
    isMet: ({ value, valueFrom }) => value === undefined || valueFrom === undefined,
    message: 'may not be set beside value; remove one of the two',
    at: 'valueFrom',
  },
);

const Quantities = mapOf(
  matching(QUANTITY, 32, 'must be a quantity, e.g. "100m", "0.5" or "256Mi"'),
  { max: 253, form: 'that name resources, e.g. `cpu` or `memory`' },
  { max: 16 },
);

const Scale = withRule(
  z.object({
    min: integer(0, 1000).optional().describe('Minimum replicas. Default: 0 on Knative, else 1, the least there.'),
    max: integer(1, 1000).optional().describe('Maximum replicas. Default: on Knative what it decides, else `min`.'),
    autoscaler: choice('HorizontalPodAutoscaler', 'None')
      .optional()
      .describe(
        'What sets the replicas of a Deployment between `min` and `max`. `None`: your own autoscaler, such as KEDA; the operator only keeps the number within `min` and `max`. Default: HorizontalPodAutoscaler.',
      ),
    targetRequestsInFlight: integer(1, 10_000)
      .optional()
      .describe(
        'Average requests in flight per replica, open streams included, that the autoscaler aims at. The HorizontalPodAutoscaler then also reads the Pods metric `gateway_operator_requests_in_flight`, which your metrics adapter must serve. On Knative this is the annotation `autoscaling.knative.dev/target`. No effect if `max` equals `min`, or on a Deployment with `autoscaler: None`. Default: CPU only; on Knative its own target.',
      ),
  }),
  {
    id: 'ScaleMinAboveMax',
    cel: '!has(self.min) || !has(self.max) || self.min <= self.max',
    isMet: ({ min, max }) => min === undefined || max === undefined || min <= max,
    message: 'must be at most max; lower min or raise max',
    at: 'min',
  },
);

export const Workload = withRule(
  z.object({
    type: choice('Auto', 'Knative', 'Deployment', 'External').describe(
      '`Knative`, which scales to zero, a plain `Deployment`, or `External`: the gateway runs elsewhere, at `url`. `Auto` is Knative if it is installed, else a Deployment; decided once and kept in `status.workloadType`.',
    ),
    url: Address.optional().describe(
      'With `type: External` the address of the gateway, under which `/chat/completions` is served.',
    ),
    image: matching(/^[^\p{Z}\p{C}]+$/u, 1024, 'must be the name of an image, without blanks')
      .optional()
      .describe('Container image of the gateway. Default: the image that belongs to this operator.'),
    scale: Scale.optional().describe('How many replicas.'),
    resources: z
      .object({
        requests: Quantities.optional().describe('What a replica is sure to get, e.g. `cpu: 100m`.'),
        limits: Quantities.optional().describe(
          'What a replica may use at most, e.g. `memory: 2Gi`. The memory limit decides how many bodies and streams the gateway takes, and the largest body; at least 512Mi.',
        ),
      })
      .optional()
      .describe(
        'Processor time and memory of a replica. Default: requests of 100m and 192Mi, a memory limit of 1Gi. If the field is set, it replaces all of this default.',
      ),
    env: listBy('name', EnvVar, 64)
      .optional()
      .describe(
        'Further environment variables of the container. Reserved names are ignored: `PORT`, `METRICS_PORT`, `HOST`, `SNAPSHOT_FILE`, `CREDENTIALS_DIR`, `DATABASE_DIR`, `STORE_DIR`, `JOURNAL_DIR`.',
      ),
    caConfigMapRef: z
      .object({
        name: Name.describe('Name of the ConfigMap, in the namespace of the instance.'),
        key: SecretKeyName.describe('Name of the key whose value has the certificates as PEM.'),
      })
      .optional()
      .describe(
        'Authorities that the gateway trusts in addition to those of Node: for providers, proxies, and databases without `sslrootcert`. A change of this value replaces the Pods.',
      ),
    podLabels: Labels.optional().describe('Further labels of the pods.'),
    podAnnotations: Annotations.optional().describe('Further annotations of the pods.'),
    serviceAccountName: Name.optional().describe('Service account of the pods, without its token. Default: `default`.'),
  }),
  {
    id: 'ExternalNeedsUrl',
    cel: "self.type != 'External' || has(self.url)",
    isMet: ({ type, url }) => type !== 'External' || url !== undefined,
    message: 'type is External; add url, the address of the gateway, or choose another type',
    at: 'url',
  },
);
export type Workload = z.output<typeof Workload>;

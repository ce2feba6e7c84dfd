// Where and how does the gateway of an instance run?
import * as z from 'zod';
import { Name, SecretEntry, text } from './fragments.ts';
import { mapBy } from './list-type.ts';
import { Annotations, Labels, mapOf } from './map-of.ts';
import { ruled } from './ruled.ts';
import { externalNeedsUrl, oneValue, oneValueSource, resourceNames, scaleInOrder } from './rules.ts';

const ADDRESS = /^https?:\/\/[^\p{Z}\p{C}/?#@]+(\/[^\p{Z}\p{C}?#]*)?$/u;
const QUANTITY = /^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/u;

const keyOf = (what: string) =>
  z
    .object({
      name: Name.describe(`Name of the ${what}, in the namespace of the instance.`),
      key: SecretEntry.describe('Name of the data entry.'),
      optional: z.boolean().optional().describe('Whether the entry may be missing. Default: false.'),
    })
    .optional()
    .describe(`An entry of a ${what}.`);

const EnvVar = ruled(
  z.object({
    name: z
      .string()
      .regex(/^[-._a-zA-Z][-._a-zA-Z0-9]*$/u)
      .max(256)
      .describe('Name of the variable.'),
    value: text(32_768).optional().describe('Its value.'),
    valueFrom: ruled(z.object({ secretKeyRef: keyOf('Secret'), configMapKeyRef: keyOf('ConfigMap') }), [oneValueSource])
      .optional()
      .describe('Where the value comes from; in place of `value`.'),
  }),
  [oneValue],
);

const Quantities = mapOf(
  z.string().regex(QUANTITY, 'is not a quantity; write it like "100m", "0.5" or "256Mi"').max(32),
  { max: 16, names: resourceNames },
);

const Scale = ruled(
  z.object({
    min: z
      .int()
      .min(0)
      .max(1000)
      .optional()
      .describe('At least so many replicas. Default: 0 on Knative (scale to zero), else 1, which is the least there.'),
    max: z
      .int()
      .min(1)
      .max(1000)
      .optional()
      .describe(
        'At most so many replicas. Default: on Knative what it decides, else `min`. Above `min` the load decides.',
      ),
  }),
  [scaleInOrder],
);

export const Workload = ruled(
  z.object({
    type: z
      .enum(['Auto', 'Knative', 'Deployment', 'External'])
      .default('Auto')
      .describe(
        '`Knative` where it scales to zero, a plain `Deployment`, or `External`: the gateway runs elsewhere, at `url`. `Auto` takes Knative where it is installed; decided once and kept in `status.workloadType`.',
      ),
    url: text(2048)
      .regex(
        ADDRESS,
        'is not an address; write it like "https://host/path", without a query and without a user name or password',
      )
      .optional()
      .describe('With `type: External` the address of the gateway, under which `/chat/completions` is served.'),
    image: z
      .string()
      .regex(/^[^\p{Z}\p{C}]+$/u)
      .max(1024)
      .optional()
      .describe('Container image of the gateway. Default: the image that belongs to this operator.'),
    scale: Scale.optional().describe('How many replicas.'),
    resources: z
      .object({
        requests: Quantities.optional().describe('What a replica is sure to get, e.g. `cpu: 100m`.'),
        limits: Quantities.optional().describe('What a replica may use at most, e.g. `memory: 256Mi`.'),
      })
      .optional()
      .describe('Processor time and memory of a replica.'),
    env: z
      .array(EnvVar)
      .max(64)
      .meta(mapBy('name'))
      .optional()
      .describe(
        'Further environment variables of the container. Where it listens and what it mounts (`PORT`, `METRICS_PORT`, `HOST`, `SNAPSHOT_FILE`, `CREDENTIALS_DIR`, `DATABASE_DIR`, `STORE_DIR`, `OUTBOX_DIR`) is not theirs to say: those are left out.',
      ),
    podLabels: Labels.optional().describe('Further labels of the pods.'),
    podAnnotations: Annotations.optional().describe('Further annotations of the pods.'),
    serviceAccountName: Name.optional().describe(
      'The service account that the pods run as; its token is not mounted. Default: `default` of the namespace.',
    ),
  }),
  [externalNeedsUrl],
);
export type Workload = z.output<typeof Workload>;

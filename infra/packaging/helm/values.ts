// Values of the chart: the source of values.yaml, of its strict schema and of the table in the chart's README.
import * as z from 'zod';
import { pageUrl } from '#core/failure/documentation.ts';

/** A colon stands only before the port of a registry: a tag or a digest has a value of its own. */
const REPOSITORY_NAME = /^(([^/:@\s]+(:[0-9]+)?\/)?[^:@\s]+)?$/;

/** Kubernetes checks these itself: the chart passes them on as they are. */
const passed = z.record(z.string(), z.unknown());
const labels = z.record(z.string(), z.string());
const names = z.array(z.strictObject({ name: z.string().min(1) }));
const amounts = z.record(z.string(), z.union([z.string(), z.number()]));
const resources = z.strictObject({ requests: amounts.optional(), limits: amounts.optional() });

const image = z.strictObject({
  repository: z
    .string()
    .regex(REPOSITORY_NAME)
    .default('')
    .describe('Required: the repository of the image that holds all functions, without tag and digest.'),
  tag: z.string().default('').describe("Tag of the image. Empty: the chart's `appVersion`."),
  digest: z
    .string()
    .regex(/^(sha256:[0-9a-f]{64})?$/)
    .default('')
    .describe('Digest of the image, `sha256:…`. It takes the place of the tag.'),
  pullPolicy: z.enum(['', 'Always', 'IfNotPresent', 'Never']).default('').describe("Empty: Kubernetes' default."),
});

const admission = z.strictObject({
  replicas: z
    .int()
    .min(1)
    .default(2)
    .describe('Pods of the admission webhook. While there is none, no gateway resource can be written.'),
  failurePolicy: z
    .enum(['Fail', 'Ignore'])
    .default('Fail')
    .describe(
      '`Ignore` admits objects without validation while the webhook is down; the reconciler validates them later.',
    ),
  nodeOptions: z
    .string()
    .default('--max-old-space-size=96 --max-semi-space-size=4')
    .describe('Options of Node. The memory limit must leave 100 MiB beside the old space.'),
  resources: resources
    .default({ requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '256Mi' } })
    .describe('Sized for the largest review under load.'),
  topologySpreadConstraints: z
    .array(passed)
    .default([
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: { 'app.kubernetes.io/name': 'admission' } },
      },
    ])
    .describe('The Pods are spread over two nodes if there are two.'),
  podDisruptionBudget: z
    .strictObject({
      enabled: z
        .boolean()
        .default(true)
        .describe('Whether a drain evicts the Pods of the webhook one after the other.'),
      maxUnavailable: z
        .union([z.int().min(0), z.string()])
        .default(1)
        .describe('Pods that a drain may evict together.'),
    })
    .prefault({}),
});

const reconcile = z.strictObject({
  nodeOptions: z
    .string()
    .default('--max-old-space-size=640 --max-semi-space-size=16')
    .describe('Options of Node: a hundred thousand keys take about 630 MiB (docs/internals/bench.md).'),
  resources: resources
    .default({ requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } })
    .describe('See docs/operate/reconciler.md.'),
  retainDays: z
    .union([z.int().min(30), z.literal('forever')])
    .default(400)
    .describe(
      'Days of ledger rows to keep before the current day, at least 30, or `forever`. See docs/reference/environment.md.',
    ),
  archive: z
    .strictObject({
      url: z
        .string()
        .default('')
        .describe(
          'Where each day of ledger rows is written as Parquet files: `s3://BUCKET/PREFIX` or `file:///FOLDER` (docs/operate/archive.md). Empty: nowhere.',
        ),
      secretName: z
        .string()
        .default('')
        .describe(
          "Secret in the release's namespace whose keys are variables of AWS, such as `AWS_ACCESS_KEY_ID`. Empty: the role of the service account.",
        ),
      claimName: z
        .string()
        .default('')
        .describe(
          "PersistentVolumeClaim in the release's namespace that is mounted at the folder of `file:///FOLDER`.",
        ),
    })
    .prefault({}),
  serviceAccountAnnotations: labels
    .default({})
    .describe('Annotations of the service account of the reconciler, such as `eks.amazonaws.com/role-arn`.'),
});

const pods = {
  imagePullSecrets: names.default([]).describe("Secrets in the release's namespace that pull the operator's image."),
  nodeSelector: labels.default({}).describe("Nodes for the operator's Pods."),
  tolerations: z.array(passed).default([]).describe("Tolerations of the operator's Pods."),
  affinity: passed.default({}).describe("Affinity of the operator's Pods."),
  priorityClassName: z.string().default('').describe("Priority of the operator's Pods."),
  podLabels: labels.default({}).describe("Further labels of the operator's Pods."),
  podAnnotations: labels.default({}).describe("Further annotations of the operator's Pods."),
  extraEnv: z
    .array(passed)
    .default([])
    .describe(
      'Further environment variables of the webhook and the reconciler: `LOG_LEVEL`, those of traces (docs/operate/metrics.md), or of proxies (docs/operate/gateways.md#proxies).',
    ),
  caConfigMap: z
    .strictObject({
      name: z
        .string()
        .default('')
        .describe(
          'ConfigMap with authorities that the webhook and the reconciler trust in addition to those of Node. It is in the namespace of the release. Restart their Pods after a change of it. Empty: none.',
        ),
      key: z.string().min(1).default('ca.crt').describe('Its key whose value has the certificates as PEM.'),
    })
    .prefault({}),
};

const gateways = z.strictObject({
  image: z.string().default('').describe("Image of gateways whose instances name none. Empty: the operator's image."),
  imagePullSecrets: names
    .default([])
    .describe('Secrets that pull the images of gateways. Each must exist in the namespace of every instance.'),
});

const certificates = z.strictObject({
  certManager: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe('Whether cert-manager issues the certificate of the webhook, in place of the reconciler.'),
      issuerRef: passed
        .default({})
        .describe(
          'Your own Issuer or ClusterIssuer, whose CA is valid for longer than its certificates. Empty: the chart makes a CA.',
        ),
    })
    .prefault({}),
});

const monitoring = {
  podMonitor: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether Prometheus scrapes the webhook, the reconciler and every gateway. The metrics port is on no Service.',
        ),
      interval: z.string().default('30s').describe('Time between two scrapes.'),
      labels: labels.default({}).describe('Labels by which your Prometheus selects PodMonitors.'),
    })
    .prefault({}),
  prometheusRule: z
    .strictObject({
      enabled: z.boolean().default(false).describe('Whether the alerts of docs/operate/alerts.md are installed.'),
      runbooks: z
        .string()
        .default(pageUrl('operate/alerts') ?? '')
        .describe('Address at which your people read that page: each alert gets a `runbook_url` there. Empty: none.'),
      labels: labels.default({}).describe('Labels by which your Prometheus selects rules.'),
    })
    .prefault({}),
  grafanaDashboard: z
    .strictObject({
      enabled: z.boolean().default(false).describe('Whether a ConfigMap with the dashboard is made.'),
      labels: labels
        .default({ grafana_dashboard: '1' })
        .describe('Labels by which the sidecar of Grafana selects dashboards.'),
    })
    .prefault({}),
};

export const Values = z.strictObject({
  global: passed.optional().describe('Values of a parent chart. Unused.'),
  image: image.prefault({}),
  crds: z
    .strictObject({
      enabled: z.boolean().default(true).describe('Whether the chart installs and upgrades the four CRDs.'),
      keep: z
        .boolean()
        .default(true)
        .describe(
          'Whether the CRDs, and with them all instances and VirtualKeys, stay when the release is uninstalled.',
        ),
    })
    .prefault({}),
  admission: admission.prefault({}),
  reconcile: reconcile.prefault({}),
  gateways: gateways.prefault({}),
  ...pods,
  secret: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe(
          'Whether the chart makes the Secret `gateway-operator`, once: upgrades keep its values. Set `false` if a tool renders the chart without the cluster (Argo CD), and create the Secret first. Before you change `true` to `false`, run `kubectl annotate secret gateway-operator -n <namespace of the release> helm.sh/resource-policy=keep`, or the upgrade deletes the Secret.',
        ),
    })
    .prefault({}),
  certificates: certificates.prefault({}),
  secretMetadataPrefixes: z
    .array(z.string())
    .default([])
    .describe(
      'Domains, such as `reflector.example.com`, whose labels and annotations a `secretTemplate` may set: software that acts on them then acts for whoever creates VirtualKeys. Without a prefix, and with `app.kubernetes.io`, they are always allowed.',
    ),
  networkPolicies: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether only API servers reach the webhook (see `webhook`), and only this namespace reaches the reconciler.',
        ),
      podCidrs: z
        .array(z.string())
        .default([])
        .describe('Networks of your Pods, which then cannot reach the webhook. Required with `enabled` and `webhook`.'),
      webhook: z
        .boolean()
        .default(true)
        .describe(
          'Whether the webhook has a policy. Set `false` if API servers have addresses in the networks of the Pods (EKS with the Amazon VPC CNI).',
        ),
      gateways: z
        .strictObject({
          namespaces: z
            .array(z.string())
            .default([])
            .describe(
              'Namespaces of instances in which only `metricsFrom` reaches the port of metrics of gateways. Each must exist. Does not need `enabled`.',
            ),
          metricsFrom: z
            .array(z.string())
            .default(['monitoring'])
            .describe('Namespaces whose Pods may read the metrics of these gateways: that of Prometheus.'),
        })
        .prefault({}),
    })
    .prefault({}),
  ...monitoring,
  uninstall: z
    .strictObject({
      objects: z
        .enum(['Keep', 'Delete'])
        .default('Keep')
        .describe(
          '`Keep` leaves instances, keys, users and teams, free of finalizers, and gateways continue serving. `Delete` deletes them all first: keys stop working, and gateways are deleted.',
        ),
    })
    .prefault({}),
  oneNamespace: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether the operator works in its own namespace only, by Roles and without any right on the cluster. The CRDs must be installed, and there is no webhook: conditions show what is wrong.',
        ),
    })
    .prefault({}),
  quickstart: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe(
          'Whether a PostgreSQL, a Redis, a sample model, one instance and one key are made, to try the operator. Never for production.',
        ),
      namespace: z.string().min(1).default('gateway-quickstart').describe('The namespace of all of it.'),
    })
    .prefault({}),
  namespace: z
    .strictObject({
      create: z
        .boolean()
        .default(false)
        .describe(
          'Whether the namespace is among the rendered objects, with the labels of the `restricted` profile. For `helm template`; Helm itself has `--create-namespace`.',
        ),
    })
    .prefault({}),
  extraObjects: z
    .array(z.union([passed, z.string()]))
    .default([])
    .describe('Further objects of the release; texts are templates.'),
});

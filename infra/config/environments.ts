// What does each function read from the environment of its process?
import {
  httpAddress,
  image,
  list,
  months,
  namespacedName,
  port,
  processes,
  RECONCILE_TOKEN_IS,
  segments,
  share,
  tokens,
} from './readers.ts';
import { type Agreement, oneOf, optional, required, text, type ValuesOf, withDefault } from './variable.ts';

const server = {
  PORT: withDefault(port, '8080', 'Where the function listens.'),
  HOST: withDefault(text, '0.0.0.0', 'On which address.'),
  METRICS_PORT: withDefault(port, '9464', 'Where `GET /metrics` stands: a port of its own, which no Service has.'),
  LOG_LEVEL: withDefault(oneOf('info', 'warn', 'error'), 'info'),
};

const api = {
  KUBECONFIG: optional(text, 'A kubeconfig file; absent: the service account of the Pod.'),
  KUBERNETES_SERVICE_HOST: optional(text),
  KUBERNETES_SERVICE_PORT: withDefault(port, '443'),
};

const needsCluster: Agreement = {
  holds: ({ KUBECONFIG, KUBERNETES_SERVICE_HOST }) => KUBECONFIG !== undefined || KUBERNETES_SERVICE_HOST !== undefined,
  at: 'KUBECONFIG',
  problem: 'name a kubeconfig file, or run in a Pod of a cluster',
};
const needsToken: Agreement = {
  holds: ({ RECONCILE_URL: url, RECONCILE_TOKEN: token }) => url === undefined || token !== undefined,
  at: 'RECONCILE_TOKEN',
  problem: 'RECONCILE_URL needs it: name the token that reconcile asks for',
};
const needsWholeTls: Agreement = {
  holds: ({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key }) => (cert === undefined) === (key === undefined),
  at: 'TLS_KEY_FILE',
  problem: 'goes together with TLS_CERT_FILE: set both, or none',
};

/** What the SDK of OpenTelemetry reads by itself, of its headers for instance, is not here. */
const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    httpAddress,
    'A collector that takes OTLP over HTTP in JSON: what is done is told there as spans. Absent: nowhere.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(httpAddress, 'The same, as the whole address of its traces.'),
  OTEL_TRACES_SAMPLER: withDefault(
    oneOf(
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ),
    'parentbased_always_on',
    'What is followed; `parentbased_`: whoever asked decides, if anybody did.',
  ),
  OTEL_TRACES_SAMPLER_ARG: withDefault(share, '1', 'The share of `traceidratio`.'),
};
/** All that the local stack reads of its environment. */
export const TracesEnvironment = { variables: traces };
export type TracesEnvironment = ValuesOf<typeof TracesEnvironment>;

export const AdmissionEnvironment = {
  variables: {
    ...server,
    ...api,
    TLS_CERT_FILE: optional(text, 'PEM; with TLS_KEY_FILE the function speaks HTTPS itself.'),
    TLS_KEY_FILE: optional(text),
    PATH_SECRETS: required(
      segments,
      'Unguessable path segments, separated by commas, one of which stands before /mutate and /validate.',
    ),
    RECONCILE_URL: optional(
      httpAddress,
      'Where to post "look here" after an object was admitted. Absent: the schedule finds it.',
    ),
    RECONCILE_TOKEN: optional(tokens, RECONCILE_TOKEN_IS),
    OWN_USERS: optional(list, "Reconcile's identity, whose writes are not judged."),
    ...traces,
  },
  agreements: [needsCluster, needsToken, needsWholeTls],
};

const retention = {
  RETAIN_MONTHS: optional(
    months,
    'Entries of this month and of so many before it are kept, older months are dropped whole; sums stay. Absent: for ever.',
  ),
};

const certificate = {
  ADMISSION_SERVICE: optional(
    namespacedName,
    "The Service of admission, NAMESPACE/NAME, whose certificate reconcile issues and renews. Absent: it is somebody else's.",
  ),
};

export const ReconcileEnvironment = {
  variables: {
    ...server,
    ...api,
    RECONCILE_TOKEN: required(tokens, RECONCILE_TOKEN_IS),
    GATEWAY_PROCESSES: processes,
    GATEWAY_IMAGE: image,
    ...retention,
    ...certificate,
    ...traces,
  },
  agreements: [needsCluster],
};

/** Of the program that removes the operator. */
export const UninstallEnvironment = { variables: api, agreements: [needsCluster] };

/** Of the CronJob's program. */
export const TriggerEnvironment = {
  variables: {
    RECONCILE_URL: required(httpAddress, 'Where reconcile is asked to look everywhere.'),
    RECONCILE_TOKEN: required(tokens, RECONCILE_TOKEN_IS),
  },
};

export const GatewayEnvironment = {
  variables: {
    ...server,
    SNAPSHOT_FILE: withDefault(text, '/etc/gateway/snapshot/snapshot.json', 'The compiled instance.'),
    CREDENTIALS_DIR: withDefault(text, '/etc/gateway/credentials', 'One folder per Secret, one file per entry.'),
    DATABASE_DIR: withDefault(
      text,
      '/etc/gateway/database',
      'Files host, username, password, dbname; port where it is not 5432.',
    ),
    STORE_DIR: withDefault(text, '/etc/gateway/store', 'Files host, port, password; host alone where it is memory.'),
    OUTBOX_DIR: withDefault(text, '/var/lib/gateway/outbox', 'Outlives the process: an emptyDir at least.'),
    ...traces,
  },
};

export type AdmissionEnvironment = ValuesOf<typeof AdmissionEnvironment>;
export type ReconcileEnvironment = ValuesOf<typeof ReconcileEnvironment>;
export type GatewayEnvironment = ValuesOf<typeof GatewayEnvironment>;

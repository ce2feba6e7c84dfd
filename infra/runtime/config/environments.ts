// Environments of the functions on Node. docs/reference/environment.md says what each variable is for.
import { accessSync, constants } from 'node:fs';
import {
  domains,
  httpAddress,
  image,
  list,
  months,
  namespace,
  namespacedName,
  objects,
  port,
  processes,
  segments,
  serviceSegments,
  share,
  tokens,
} from './readers.ts';
import { type Agreement, converted, oneOf, optional, required, text, type ValuesOf, withDefault } from './variable.ts';

/** A file that the process may read. */
const file = converted((path) => {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return undefined;
  }
}, 'is not a file that can be read');

const server = {
  PORT: withDefault(port, '8080'),
  HOST: withDefault(text, '::'),
  METRICS_PORT: withDefault(port, '9464'),
  LOG_LEVEL: withDefault(oneOf('info', 'warn', 'error'), 'info'),
};

/** KUBERNETES_SERVICE_…: the kubelet sets them in a Pod, which has a service account. */
const api = {
  KUBECONFIG: optional(file),
  KUBERNETES_SERVICE_HOST: optional(text),
  KUBERNETES_SERVICE_PORT: withDefault(port, '443'),
  WATCH_NAMESPACE: optional(namespace),
};

/** Admission and reconcile must have the same: one refuses, the other leaves out. */
const rules = { SECRET_METADATA_PREFIXES: optional(domains) };

const needsCluster: Agreement = {
  isMet: ({ KUBECONFIG, KUBERNETES_SERVICE_HOST }) => KUBECONFIG !== undefined || KUBERNETES_SERVICE_HOST !== undefined,
  at: 'KUBECONFIG',
  problem: 'name a kubeconfig file, or run in a Pod of a cluster',
};
const needsToken: Agreement = {
  isMet: ({ RECONCILE_URL: url, RECONCILE_TOKEN: token }) => url === undefined || token !== undefined,
  at: 'RECONCILE_TOKEN',
  problem: 'RECONCILE_URL needs it: name the token that reconcile asks for',
};
const needsWholeTls: Agreement = {
  isMet: ({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key }) => (cert === undefined) === (key === undefined),
  at: 'TLS_KEY_FILE',
  problem: 'goes together with TLS_CERT_FILE: set both, or none',
};

const roots = ['always_on', 'always_off', 'traceidratio'] as const;

/** Variables that OpenTelemetry's SDK reads by itself, for its headers for instance, are not here. */
const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(httpAddress),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(httpAddress),
  OTEL_TRACES_SAMPLER: withDefault(
    oneOf(...roots, ...roots.map((root) => `parentbased_${root}` as const)),
    'parentbased_always_on',
  ),
  OTEL_TRACES_SAMPLER_ARG: withDefault(share, '1'),
};
/** All that the local stack reads of its environment. */
export const TracesEnvironment = { variables: traces };
export type TracesEnvironment = ValuesOf<typeof TracesEnvironment>;

export const AdmissionEnvironment = {
  variables: {
    ...server,
    ...api,
    TLS_CERT_FILE: optional(file),
    TLS_KEY_FILE: optional(file),
    PATH_SECRETS: required(segments),
    RECONCILE_URL: optional(httpAddress),
    RECONCILE_TOKEN: optional(tokens),
    OWN_USERS: optional(list),
    ...rules,
    ...traces,
  },
  agreements: [needsCluster, needsToken, needsWholeTls],
};

export const ReconcileEnvironment = {
  variables: {
    ...server,
    ...api,
    RECONCILE_TOKEN: required(tokens),
    GATEWAY_PROCESSES: processes,
    GATEWAY_IMAGE: image,
    GATEWAY_PULL_SECRETS: optional(list),
    RETAIN_MONTHS: optional(months),
    ...rules,
    ADMISSION_SERVICE: optional(namespacedName),
    RESYNC_AT_START: withDefault(oneOf('true', 'false'), 'false'),
    PATH_SECRETS: optional(serviceSegments),
    ...traces,
  },
  agreements: [needsCluster],
};

/** Variables of the program that removes the operator. */
export const UninstallEnvironment = {
  variables: { ...api, UNINSTALL_OBJECTS: withDefault(oneOf('Keep', 'Delete'), 'Delete') },
  agreements: [needsCluster],
};

const needsWholeCall: Agreement = {
  isMet: ({ GATEWAY_URL: url, GATEWAY_MODEL: model, KEY_SECRET: secret }) =>
    (url === undefined) === (model === undefined) && (url === undefined) === (secret === undefined),
  at: 'GATEWAY_URL',
  problem: 'goes together with GATEWAY_MODEL and KEY_SECRET: set all of them, or none',
};

/** Variables of the program that checks an installation. */
export const CheckEnvironment = {
  variables: {
    ...api,
    CHECK_NAMESPACE: required(text),
    GATEWAY_URL: optional(httpAddress),
    GATEWAY_MODEL: optional(text),
    KEY_SECRET: optional(namespacedName),
  },
  agreements: [needsCluster, needsWholeCall],
};

/** Variables of the quickstart's programs. */
export const ApplyEnvironment = { variables: { ...api, OBJECTS: required(objects) }, agreements: [needsCluster] };
export const SampleUpstreamEnvironment = {
  variables: { PORT: server.PORT, HOST: server.HOST, SAMPLE_KEY: required(text) },
};

/** Variables of the CronJob's program. */
export const TriggerEnvironment = {
  variables: { RECONCILE_URL: required(httpAddress), RECONCILE_TOKEN: required(tokens) },
};

export const GatewayEnvironment = {
  variables: {
    ...server,
    SNAPSHOT_FILE: withDefault(text, '/etc/gateway/snapshot/snapshot.json'),
    CREDENTIALS_DIR: withDefault(text, '/etc/gateway/credentials'),
    DATABASE_DIR: withDefault(text, '/etc/gateway/database'),
    STORE_DIR: withDefault(text, '/etc/gateway/store'),
    JOURNAL_DIR: withDefault(text, '/var/lib/gateway/journal'),
    AWS_ROLE_ARN: optional(text),
    AWS_WEB_IDENTITY_TOKEN_FILE: optional(file),
    ...traces,
  },
};

export type AdmissionEnvironment = ValuesOf<typeof AdmissionEnvironment>;
export type ReconcileEnvironment = ValuesOf<typeof ReconcileEnvironment>;
export type GatewayEnvironment = ValuesOf<typeof GatewayEnvironment>;

// Environments of the functions on Node. The comment of each variable is its row in docs/reference/environment.md, with
// links as that page needs them: a variable without a comment fails `npm run generate`.
import { accessSync, constants } from 'node:fs';
import {
  archiveAddress,
  domains,
  httpAddress,
  image,
  list,
  namespace,
  namespacedName,
  objects,
  port,
  processes,
  retention,
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
  /** Port to listen on. */
  PORT: withDefault(port, '8080'),
  /**
   * Address to listen on. `::` is every address, IPv6 and IPv4; on a machine without IPv6 it is every IPv4 address.
   */
  HOST: withDefault(text, '::'),
  /** Port of `GET /metrics`, and of probes, on the same address. */
  METRICS_PORT: withDefault(port, '9464'),
  /** `info`, `warn` or `error`: the lowest level that is logged. */
  LOG_LEVEL: withDefault(oneOf('info', 'warn', 'error'), 'info'),
};

const api = {
  /** Path of a kubeconfig; absent: the service account of the Pod. */
  KUBECONFIG: optional(file),
  /** Host of the API server, for the service account. The kubelet sets it in each Pod. */
  KUBERNETES_SERVICE_HOST: optional(text),
  /** Port of the API server, for the service account. The kubelet sets it in each Pod. */
  KUBERNETES_SERVICE_PORT: withDefault(port, '443'),
  /** Watch only this namespace, see [one namespace](../install/kubernetes.md#one-namespace). */
  WATCH_NAMESPACE: optional(namespace),
};

const proxies = {
  /**
   * Proxy for `https://` addresses outside the cluster: of providers, token services, Upstash and the archive, see
   * [proxies](../operate/gateways.md#proxies).
   */
  HTTPS_PROXY: optional(httpAddress),
  /** The same for `http://` addresses. */
  HTTP_PROXY: optional(httpAddress),
  /**
   * What is called without a proxy, separated by commas: names with their subdomains, `.suffix` for subdomains only,
   * addresses, CIDR blocks, or `*` for everything.
   */
  NO_PROXY: optional(text),
};

/** Rules of both: the webhook refuses, the reconciler leaves out. */
const rules = {
  /**
   * Domains, separated by commas, whose labels and annotations a `secretTemplate` may set, see
   * [rights](../install/kubernetes.md#rights-of-people). Both functions must have the same.
   */
  SECRET_METADATA_PREFIXES: optional(domains),
};

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
  /**
   * Address of a collector for OTLP over HTTP in JSON, without the path `/v1/traces`, see
   * [traces](../operate/metrics.md#traces).
   */
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(httpAddress),
  /** The same with its path. It wins over the variable above. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(httpAddress),
  /**
   * Which requests are traced: `always_on`, `always_off`, `traceidratio`, or `parentbased_` and one of them: then the
   * trace of the client decides, if it sends one.
   */
  OTEL_TRACES_SAMPLER: withDefault(
    oneOf(...roots, ...roots.map((root) => `parentbased_${root}` as const)),
    'parentbased_always_on',
  ),
  /** Share of requests, from 0 to 1, for the samplers `traceidratio` and `parentbased_traceidratio`. */
  OTEL_TRACES_SAMPLER_ARG: withDefault(share, '1'),
};
/** All that the local stack reads of its environment. */
export const TracesEnvironment = { variables: traces };
export type TracesEnvironment = ValuesOf<typeof TracesEnvironment>;

/** Names of AWS, which its tools read too. */
const archive = {
  /**
   * Where each day of ledger rows is written as Parquet files 48 hours after its end: `s3://BUCKET/PREFIX` or
   * `file:///FOLDER`, see [archive](../operate/archive.md). Absent: nowhere.
   */
  ARCHIVE_URL: optional(archiveAddress),
  /** Region of the bucket. Required if `ARCHIVE_URL` is a bucket and there is no `AWS_ENDPOINT_URL_S3`. */
  AWS_REGION: optional(text),
  /** Address of a server that speaks S3, such as MinIO; absent: Amazon's. */
  AWS_ENDPOINT_URL_S3: optional(httpAddress),
  /** Access key for the bucket. It needs `AWS_SECRET_ACCESS_KEY`. Absent: the role of the Pod. */
  AWS_ACCESS_KEY_ID: optional(text),
  /** Secret of the access key. */
  AWS_SECRET_ACCESS_KEY: optional(text),
  /** Session token of temporary access keys. */
  AWS_SESSION_TOKEN: optional(text),
  /** Role for the bucket. EKS sets it if the service account `reconcile` is annotated with a role. */
  AWS_ROLE_ARN: optional(text),
  /** File with the token for that role. EKS sets it too. */
  AWS_WEB_IDENTITY_TOKEN_FILE: optional(file),
  /** Address that gives keys of the role. EKS sets it if the service account has a Pod Identity association. */
  AWS_CONTAINER_CREDENTIALS_FULL_URI: optional(httpAddress),
  /** File with the token for that address. EKS sets it too. */
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: optional(file),
};

const needsRegion: Agreement = {
  isMet: ({ ARCHIVE_URL: url, AWS_REGION: region, AWS_ENDPOINT_URL_S3: endpoint }) =>
    !String(url).startsWith('s3:') || region !== undefined || endpoint !== undefined,
  at: 'AWS_REGION',
  problem: 'ARCHIVE_URL is a bucket: name its region, such as eu-central-1',
};
const needsWholeKeys: Agreement = {
  isMet: ({ ARCHIVE_URL: url, AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret }) =>
    !String(url).startsWith('s3:') || (id === undefined) === (secret === undefined),
  at: 'AWS_SECRET_ACCESS_KEY',
  problem: 'goes together with AWS_ACCESS_KEY_ID: set both, or none to use the role of the Pod',
};

export const AdmissionEnvironment = {
  variables: {
    ...server,
    ...api,
    /**
     * PEM file of the certificate. With it the webhook serves HTTPS, and reads the file again when it changes. It needs
     * `TLS_KEY_FILE`.
     */
    TLS_CERT_FILE: optional(file),
    /** PEM file of the private key, read again when it changes. It needs `TLS_CERT_FILE`. */
    TLS_KEY_FILE: optional(file),
    /**
     * Path segments of at least 16 characters, separated by commas; one of them precedes `/mutate` and `/validate`.
     */
    PATH_SECRETS: required(segments),
    /** Address for triggers; absent: no triggers, so the next resync finds changes. */
    RECONCILE_URL: optional(httpAddress),
    /**
     * Token of at least 16 characters that the reconciler requires; two, separated by a comma, while one replaces the
     * other. The webhook sends the first. Required with `RECONCILE_URL`.
     */
    RECONCILE_TOKEN: optional(tokens),
    /** User name of the reconciler's service account; the webhook skips its writes. Separate several names by commas. */
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
    ...proxies,
    /**
     * Token of at least 16 characters that the reconciler requires of whoever asks it for a resync; two, separated by a
     * comma, while one replaces the other: it accepts both.
     */
    RECONCILE_TOKEN: required(tokens),
    /**
     * Number of processes behind an instance of type `External`: `one` or `many`. With `one` its Redis Secret may have
     * the host `memory`.
     */
    GATEWAY_PROCESSES: processes,
    /** Image of gateways whose instances name none. The default is the image of the release. */
    GATEWAY_IMAGE: image,
    /**
     * Secrets, separated by commas, that pull the images of gateways; each must exist in the namespace of the instance.
     */
    GATEWAY_PULL_SECRETS: optional(list),
    /**
     * Days of ledger rows to keep before the current day, at least 30, or `forever`. Each resync drops all older days,
     * see [days of ledger rows](#days-of-ledger-rows).
     */
    RETAIN_DAYS: withDefault(retention, '400'),
    ...archive,
    ...rules,
    /**
     * `NAMESPACE/NAME` of the Service whose certificate the reconciler issues and renews; absent: you or cert-manager
     * issue it.
     */
    ADMISSION_SERVICE: optional(namespacedName),
    /**
     * `true` or `false`. With `true` a resync begins at the start: for a process that runs all the time, as in
     * `install.yaml`.
     */
    RESYNC_AT_START: withDefault(oneOf('true', 'false'), 'false'),
    /**
     * The same as for the webhook. With `ADMISSION_SERVICE` the reconciler writes the first segment into the webhook
     * configurations. Use lowercase letters and digits.
     */
    PATH_SECRETS: optional(serviceSegments),
    ...traces,
  },
  agreements: [needsCluster, needsRegion, needsWholeKeys],
};

/** Variables of the program that removes the operator. */
export const UninstallEnvironment = {
  variables: {
    ...api,
    /** `Delete` or `Keep`: what happens to the custom resources, see [uninstall](../install/uninstall.md). */
    UNINSTALL_OBJECTS: withDefault(oneOf('Keep', 'Delete'), 'Delete'),
  },
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
    /** Namespace in which the webhook must refuse a wrong instance, in a dry run. */
    CHECK_NAMESPACE: required(text),
    /** Address of a gateway: one chat completion is made there and charged. Absent: none is made. */
    GATEWAY_URL: optional(httpAddress),
    /** Model of that request. Required with `GATEWAY_URL`. */
    GATEWAY_MODEL: optional(text),
    /** `NAMESPACE/NAME` of the Secret that has the key value of that request. Required with `GATEWAY_URL`. */
    KEY_SECRET: optional(namespacedName),
  },
  agreements: [needsCluster, needsWholeCall],
};

/** Variables of the quickstart's programs. */
export const ApplyEnvironment = {
  variables: {
    ...api,
    /** JSON array of the objects to apply. */
    OBJECTS: required(objects),
  },
  agreements: [needsCluster],
};
export const SampleUpstreamEnvironment = {
  variables: {
    /** Port to listen on. */
    PORT: server.PORT,
    /**
     * Address to listen on. `::` is every address, IPv6 and IPv4; on a machine without IPv6 it is every IPv4 address.
     */
    HOST: server.HOST,
    /** API key that the sample upstream requires. */
    SAMPLE_KEY: required(text),
  },
};

/** Variables of the CronJob's program. */
export const TriggerEnvironment = {
  variables: {
    /** Address of the reconciler. */
    RECONCILE_URL: required(httpAddress),
    /** Token that the reconciler requires; of two the first is sent. */
    RECONCILE_TOKEN: required(tokens),
  },
};

export const GatewayEnvironment = {
  variables: {
    ...server,
    ...proxies,
    /** File with the compiled instance. */
    SNAPSHOT_FILE: withDefault(text, '/etc/gateway/snapshot/snapshot.json'),
    /** Folder with the credentials of providers: a folder per Secret, in it a file per key. */
    CREDENTIALS_DIR: withDefault(text, '/etc/gateway/credentials'),
    /**
     * Folder with the files `host`, `username`, `password`, `dbname`; optional are `port` (5432), `sslmode`,
     * `sslrootcert`, `sslcert` and `sslkey`.
     */
    DATABASE_DIR: withDefault(text, '/etc/gateway/database'),
    /**
     * Folder with the files `host`, `port`, `password`; `host` alone if it is `memory`. Optional are `username`, `ca`,
     * `clientCertificate` and `clientKey`.
     */
    STORE_DIR: withDefault(text, '/etc/gateway/store'),
    /**
     * Folder of the journal. It must outlive the process: an `emptyDir` survives a crash of the container, a persistent
     * volume also the loss of the Pod.
     */
    JOURNAL_DIR: withDefault(text, '/var/lib/gateway/journal'),
    /**
     * Role for Bedrock. EKS sets it if the Pod's service account (`workload.serviceAccountName`) has a role, see
     * [credentials](providers.md#addresses-and-credentials).
     */
    AWS_ROLE_ARN: optional(text),
    /** File with the token for that role. EKS sets it too. */
    AWS_WEB_IDENTITY_TOKEN_FILE: optional(file),
    ...traces,
  },
};

export type AdmissionEnvironment = ValuesOf<typeof AdmissionEnvironment>;
export type ReconcileEnvironment = ValuesOf<typeof ReconcileEnvironment>;
export type GatewayEnvironment = ValuesOf<typeof GatewayEnvironment>;

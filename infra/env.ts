// What does each function read from its environment? The only place that does; everything wrong is said at once, at start.
import { parseDuration } from '#core/duration.ts';
import { isMap } from '#crds/shapes.ts';
import { RELEASE_IMAGE } from './release.ts';
import {
  type Agreement,
  bound,
  converted,
  type Environment,
  matching,
  oneOf,
  optional,
  type Read,
  readVariables,
  required,
  text,
  type ValuesOf,
  type Variables,
  withDefault,
} from './variables.ts';

const port = converted(
  (text) => (/^[0-9]{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
  'is not a port',
);
const toList = (text: string): ReadonlyArray<string> =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
const list = converted(toList, 'is not a list');
const segments = converted((text) => {
  const parts = toList(text);
  return parts.length > 0 && parts.every((part) => /^[-._~A-Za-z0-9]{16,128}$/.test(part)) ? parts : undefined;
}, 'needs 16 to 128 letters and digits in each segment');
const address = (protocol: RegExp, problem: string) =>
  converted((text) => (URL.canParse(text) && protocol.test(new URL(text).protocol) ? text : undefined), problem);
const httpsAddress = address(/^https:$/, 'is not an https:// address');
const seconds = converted(
  (text) => (/^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : undefined),
  'is not a number of seconds',
);
const name = matching(/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/, 'is not a name');
const namespacedName = converted((text) => {
  const [, namespace, name] =
    /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/([a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$/.exec(text) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}, 'is not NAMESPACE/NAME');
/** A third of it must outlast a few sweeps that fail. */
const SHORTEST_LIFETIME = 3_600_000;
const lifetime = converted((text) => {
  const millis = parseDuration(text);
  return millis !== undefined && millis >= SHORTEST_LIFETIME ? millis : undefined;
}, 'is not a duration of at least 1h, like `90d`');

const months = converted(
  (text) => (/^[1-9][0-9]{0,3}$/.test(text) && Number(text) >= 2 ? Number(text) : undefined),
  'is not a number of months, at least 2',
);

const share = converted(
  (text) => (/^(0|1|0?\.[0-9]+|1\.0+)$/.test(text) ? Number(text) : undefined),
  'is not a share from 0 to 1',
);

const processes = withDefault(
  oneOf('one', 'many'),
  'many',
  'How many gateway processes serve an instance of type `External`. `one`: its store Secret may say `memory`.',
);
const image = withDefault(
  matching(/^[^\p{Z}\p{C}]+$/u, 'is not the name of an image'),
  RELEASE_IMAGE,
  'The image of gateways whose instances name none.',
);

const caller = {
  CALLER_TOKENS: withDefault(
    oneOf('off', 'report', 'enforce'),
    'off',
    'What happens to callers without a token that an API server attaches to reviews (docs/admission.md).',
  ),
  CALLER_AUDIENCE: optional(
    httpsAddress,
    'What stands before the path in the address of the webhooks, e.g. `https://admission.gateway-operator.svc:443`.',
  ),
  CALLER_ISSUER: optional(text, "Who issues the tokens; absent: what the API server's discovery says."),
};

const server = {
  PORT: withDefault(port, '8080', 'Where the function listens.'),
  HOST: withDefault(text, '0.0.0.0', 'On which address.'),
  LOG_LEVEL: withDefault(oneOf('info', 'warn', 'error'), 'info'),
};

const api = {
  KUBECONFIG: optional(text, 'A kubeconfig file; absent: the service account of the Pod.'),
  KUBERNETES_SERVICE_HOST: optional(text),
  KUBERNETES_SERVICE_PORT: withDefault(port, '443'),
};

const needsAudience: Agreement = {
  holds: ({ CALLER_TOKENS, CALLER_AUDIENCE }) => (CALLER_TOKENS ?? 'off') === 'off' || CALLER_AUDIENCE !== undefined,
  at: 'CALLER_AUDIENCE',
  problem: 'CALLER_TOKENS needs it: name what stands before the path in the address of the webhooks',
};
const needsCluster: Agreement = {
  holds: ({ KUBECONFIG, KUBERNETES_SERVICE_HOST }) => KUBECONFIG !== undefined || KUBERNETES_SERVICE_HOST !== undefined,
  at: 'KUBECONFIG',
  problem: 'name a kubeconfig file, or run in a Pod of a cluster',
};
const needsWholeTls: Agreement = {
  holds: ({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key }) => (cert === undefined) === (key === undefined),
  at: 'TLS_KEY_FILE',
  problem: 'goes together with TLS_CERT_FILE: set both, or none',
};

const collector = address(/^https?:$/, 'is not an http:// or https:// address');
/** What the SDK of OpenTelemetry reads by itself, of its headers for instance, is not here. */
const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    collector,
    'A collector that takes OTLP over HTTP in JSON: what is done is told there as spans. Absent: nowhere.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optional(collector, 'The same, as the whole address of its traces.'),
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
    PATH_SECRETS: optional(
      segments,
      'Unguessable path segments, separated by commas, for a function on a public address.',
    ),
    RECONCILE_URL: optional(
      address(/^https?:$/, 'is not an http:// or https:// address'),
      'Where to post "look here" after an object was admitted. Absent: the schedule finds it.',
    ),
    OWN_USERS: optional(list, "Reconcile's identity, whose writes are not judged."),
    ...caller,
    ...traces,
  },
  agreements: [needsCluster, needsAudience, needsWholeTls],
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
  ADMISSION_SECRET: withDefault(name, 'admission-tls', 'The Secret of that certificate, in the same namespace.'),
  ADMISSION_WEBHOOKS: withDefault(name, 'gateway-operator', 'The name of the webhook configurations that trust it.'),
  CERTIFICATE_LIFETIME: withDefault(lifetime, '90d', 'Renewed at two thirds of it.'),
};

const listen = {
  LISTEN_SECONDS: withDefault(
    seconds,
    '120',
    'With `--listen`: so long at most, less than the `activeDeadlineSeconds` of the Job.',
  ),
  LEASE: withDefault(
    namespacedName,
    'gateway-operator/reconcile',
    'With `--listen`: the Lease, NAMESPACE/NAME, by which a run learns that its successor listens.',
  ),
};

export const ReconcileEnvironment = {
  variables: {
    ...server,
    ...api,
    GATEWAY_PROCESSES: processes,
    GATEWAY_IMAGE: image,
    ...retention,
    ...certificate,
    ...listen,
    ...traces,
  },
  agreements: [needsCluster],
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

const workerApi = {
  API_SERVER: required(httpsAddress, 'Of the API server.'),
  API_TOKEN: required(text, "Of the function's service account."),
};

/** Bindings of a Worker that are texts; set the secret ones with `wrangler secret put`. */
export const AdmissionBindings = {
  variables: { ...workerApi, PATH_SECRETS: required(segments), ...caller },
  agreements: [needsAudience],
};
export const ReconcileBindings = {
  variables: { ...workerApi, GATEWAY_PROCESSES: processes, GATEWAY_IMAGE: image },
};

interface Hyperdrive {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}
const isHyperdrive = (given: unknown): given is Hyperdrive =>
  isMap(given) &&
  typeof given.port === 'number' &&
  [given.host, given.user, given.password, given.database].every((part) => typeof part === 'string');

interface KeyValueNamespace {
  get(key: string): Promise<string | null>;
}
const isNamespace = (given: unknown): given is KeyValueNamespace => typeof given === 'object' && given !== null;

/** Secret name to entry to value. */
type Credentials = Readonly<Record<string, Readonly<Record<string, string>>>>;
const areCredentials = (json: unknown): json is Credentials =>
  isMap(json) &&
  Object.values(json).every((one) => isMap(one) && Object.values(one).every((value) => typeof value === 'string'));
const credentials = (text: string): Read<Credentials> => {
  try {
    const json: unknown = JSON.parse(text);
    return areCredentials(json)
      ? { ok: true, value: json }
      : { ok: false, problem: 'is not an object of Secrets with entries' };
  } catch {
    return { ok: false, problem: 'is not JSON' };
  }
};

export const GatewayBindings = {
  variables: {
    HYPERDRIVE: bound(isHyperdrive, 'is not a Hyperdrive binding', 'The database of the instance.'),
    SNAPSHOTS: bound(
      isNamespace,
      'is not a KV namespace',
      'A KV namespace with the compiled instance as `snapshot.json`.',
    ),
    UPSTASH_REDIS_REST_URL: required(
      matching(/^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost)[:/])/, 'is not an https:// address'),
      'The store of the instance.',
    ),
    UPSTASH_REDIS_REST_TOKEN: required(text, 'It must be allowed to write.'),
    CREDENTIALS: withDefault(
      credentials,
      '{}',
      'Credential Secrets as JSON: name of the Secret to its entries, `{"openai":{"apiKey":"…"}}`.',
    ),
  },
};

export type AdmissionEnvironment = ValuesOf<typeof AdmissionEnvironment>;
export type AdmissionBindings = ValuesOf<typeof AdmissionBindings>;
export type ReconcileEnvironment = ValuesOf<typeof ReconcileEnvironment>;
export type GatewayEnvironment = ValuesOf<typeof GatewayEnvironment>;
export type GatewayBindings = ValuesOf<typeof GatewayBindings>;

/** Their values are never printed. */
const SECRET: ReadonlySet<string> = new Set([
  'PATH_SECRETS',
  'API_TOKEN',
  'UPSTASH_REDIS_REST_TOKEN',
  'CREDENTIALS',
  'HYPERDRIVE',
]);

/** The environment as it is written down, or one error that lists everything that is wrong with it. Empty means absent. */
export function readEnvironment<V extends Variables>(
  described: Environment<V>,
  environment: Readonly<Record<string, unknown>>,
): ValuesOf<Environment<V>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const read = readVariables(described, given);
  if (read.ok) return read.value;
  throw new Error(listProblems(read.problems.map(([name, problem]) => toLine(name, problem, given[name]))));
}

/** What is wrong, a line each. */
export function listProblems(lines: ReadonlyArray<string>): string {
  return `the environment is not right:\n${[...new Set(lines)].map((line) => `  ${line}`).join('\n')}`;
}

function toLine(name: string, problem: string, value: unknown): string {
  if (value === undefined) return `${name} is not set: ${problem}`;
  return SECRET.has(name) ? `${name} ${problem}` : `${name}=${JSON.stringify(value)}: ${problem}`;
}

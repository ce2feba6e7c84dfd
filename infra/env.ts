// What does each function read from its environment? The only place that does; everything wrong is said at once, at start.
import * as z from 'zod';
import { parseDuration } from '#core/duration.ts';
import { RELEASE_IMAGE } from './release.ts';

const Port = z
  .string()
  .regex(/^[0-9]{1,5}$/, 'is not a port')
  .transform(Number)
  .pipe(z.number().max(65_535, 'is not a port'));
const List = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
const Segments = List.pipe(
  z.array(z.string().regex(/^[-._~A-Za-z0-9]{16,128}$/, 'needs 16 to 128 letters and digits in each segment')).min(1),
);
const Processes = z
  .enum(['one', 'many'])
  .default('many')
  .describe(
    'How many gateway processes serve an instance of type `External`. `one`: its store Secret may say `memory`.',
  );
const Image = z
  .string()
  .regex(/^[^\p{Z}\p{C}]+$/u, 'is not the name of an image')
  .default(RELEASE_IMAGE)
  .describe('The image of gateways whose instances name none.');

const Caller = {
  CALLER_TOKENS: z
    .enum(['off', 'report', 'enforce'])
    .default('off')
    .describe('What happens to callers without a token that an API server attaches to reviews (docs/admission.md).'),
  CALLER_AUDIENCE: z
    .url({ protocol: /^https$/, error: 'is not an https:// address' })
    .optional()
    .describe(
      'What stands before the path in the address of the webhooks, e.g. `https://admission.gateway-operator.svc:443`.',
    ),
  CALLER_ISSUER: z.string().optional().describe("Who issues the tokens; absent: what the API server's discovery says."),
};

const Server = {
  PORT: Port.default(8080).describe('Where the function listens.'),
  HOST: z.string().default('0.0.0.0').describe('On which address.'),
  LOG_LEVEL: z.enum(['info', 'warn', 'error']).default('info'),
};

const Api = {
  KUBECONFIG: z.string().optional().describe('A kubeconfig file; absent: the service account of the Pod.'),
  KUBERNETES_SERVICE_HOST: z.string().optional(),
  KUBERNETES_SERVICE_PORT: Port.default(443),
};

/** Judged beside everything else, not after it: one start shows all that is wrong. */
const together = { when: () => true };
const hasCluster = ({ KUBECONFIG, KUBERNETES_SERVICE_HOST }: Partial<Record<string, unknown>>) =>
  KUBECONFIG !== undefined || KUBERNETES_SERVICE_HOST !== undefined;
const hasAudience = ({ CALLER_TOKENS, CALLER_AUDIENCE }: Partial<Record<string, unknown>>) =>
  (CALLER_TOKENS ?? 'off') === 'off' || CALLER_AUDIENCE !== undefined;
const NO_AUDIENCE = {
  ...together,
  path: ['CALLER_AUDIENCE'],
  error: 'CALLER_TOKENS needs it: name what stands before the path in the address of the webhooks',
};
const NO_CLUSTER = { ...together, path: ['KUBECONFIG'], error: 'name a kubeconfig file, or run in a Pod of a cluster' };

export const AdmissionEnvironment = z
  .object({
    ...Server,
    ...Api,
    TLS_CERT_FILE: z.string().optional().describe('PEM; with TLS_KEY_FILE the function speaks HTTPS itself.'),
    TLS_KEY_FILE: z.string().optional(),
    PATH_SECRETS: Segments.optional().describe(
      'Unguessable path segments, separated by commas, for a function on a public address.',
    ),
    RECONCILE_URL: z
      .url({ protocol: /^https?$/, error: 'is not an http:// or https:// address' })
      .optional()
      .describe('Where to post "look here" after an object was admitted. Absent: the schedule finds it.'),
    OWN_USERS: List.optional().describe("Reconcile's identity, whose writes are not judged."),
    ...Caller,
  })
  .refine(hasCluster, NO_CLUSTER)
  .refine(hasAudience, NO_AUDIENCE)
  .refine(({ TLS_CERT_FILE: cert, TLS_KEY_FILE: key }) => (cert === undefined) === (key === undefined), {
    ...together,
    path: ['TLS_KEY_FILE'],
    error: 'goes together with TLS_CERT_FILE: set both, or none',
  });

const Name = z.string().regex(/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/, 'is not a name');
const ServiceName = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/, 'is not NAMESPACE/NAME')
  .transform((text) => {
    const [namespace = '', name = ''] = text.split('/');
    return { namespace, name };
  });
const Lifetime = z.string().transform((text, context) => {
  const millis = parseDuration(text);
  if (millis !== undefined && millis >= SHORTEST_LIFETIME) return millis;
  context.addIssue({ code: 'custom', message: 'is not a duration of at least 1h, like `90d`' });
  return z.NEVER;
});
/** A third of it must outlast a few sweeps that fail. */
const SHORTEST_LIFETIME = 3_600_000;

const Certificate = {
  ADMISSION_SERVICE: ServiceName.optional().describe(
    "The Service of admission, NAMESPACE/NAME, whose certificate reconcile issues and renews. Absent: it is somebody else's.",
  ),
  ADMISSION_SECRET: Name.default('admission-tls').describe('The Secret of that certificate, in the same namespace.'),
  ADMISSION_WEBHOOKS: Name.default('gateway-operator').describe(
    'The name of the webhook configurations that trust it.',
  ),
  CERTIFICATE_LIFETIME: Lifetime.prefault('90d').describe('Renewed at two thirds of it.'),
};

const Listen = {
  LISTEN_SECONDS: z
    .string()
    .regex(/^[1-9][0-9]{0,3}$/, 'is not a number of seconds')
    .transform(Number)
    .prefault('120')
    .describe('With `--listen`: so long at most, less than the `activeDeadlineSeconds` of the Job.'),
  LEASE: ServiceName.prefault('gateway-operator/reconcile').describe(
    'With `--listen`: the Lease, NAMESPACE/NAME, by which a run learns that its successor listens.',
  ),
};

export const ReconcileEnvironment = z
  .object({ ...Server, ...Api, GATEWAY_PROCESSES: Processes, GATEWAY_IMAGE: Image, ...Certificate, ...Listen })
  .refine(hasCluster, NO_CLUSTER);

export const GatewayEnvironment = z.object({
  ...Server,
  SNAPSHOT_FILE: z.string().default('/etc/gateway/snapshot/snapshot.json').describe('The compiled instance.'),
  CREDENTIALS_DIR: z
    .string()
    .default('/etc/gateway/credentials')
    .describe('One folder per Secret, one file per entry.'),
  DATABASE_DIR: z
    .string()
    .default('/etc/gateway/database')
    .describe('Files host, username, password, dbname; port where it is not 5432.'),
  STORE_DIR: z
    .string()
    .default('/etc/gateway/store')
    .describe('Files host, port, password; host alone where it is memory.'),
  OUTBOX_DIR: z.string().default('/var/lib/gateway/outbox').describe('Outlives the process: an emptyDir at least.'),
});

const WorkerApi = {
  API_SERVER: z.url({ protocol: /^https$/, error: 'is not an https:// address' }).describe('Of the API server.'),
  API_TOKEN: z.string().min(1).describe("Of the function's service account."),
};

/** Bindings of a Worker that are texts; set the secret ones with `wrangler secret put`. */
export const AdmissionBindings = z
  .object({ ...WorkerApi, PATH_SECRETS: Segments, ...Caller })
  .refine(hasAudience, NO_AUDIENCE);
export const ReconcileBindings = z.object({ ...WorkerApi, GATEWAY_PROCESSES: Processes, GATEWAY_IMAGE: Image });

/** Secret name to entry to value. */
const Credentials = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'is not JSON' });
      return z.NEVER;
    }
  })
  .pipe(z.record(z.string(), z.record(z.string(), z.string()), 'is not an object of Secrets with entries'));
interface KeyValueNamespace {
  get(key: string): Promise<string | null>;
}
export const GatewayBindings = z.object({
  HYPERDRIVE: z
    .object({ host: z.string(), port: z.number(), user: z.string(), password: z.string(), database: z.string() })
    .describe('The database of the instance.'),
  SNAPSHOTS: z
    .custom<KeyValueNamespace>((value) => typeof value === 'object' && value !== null, 'is not a KV namespace')
    .describe('A KV namespace with the compiled instance as `snapshot.json`.'),
  UPSTASH_REDIS_REST_URL: z
    .string()
    .regex(/^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost)[:/])/, 'is not an https:// address')
    .describe('The store of the instance.'),
  UPSTASH_REDIS_REST_TOKEN: z.string().min(1).describe('It must be allowed to write.'),
  CREDENTIALS: Credentials.prefault('{}').describe(
    'Credential Secrets as JSON: name of the Secret to its entries, `{"openai":{"apiKey":"…"}}`.',
  ),
});

export type AdmissionEnvironment = z.infer<typeof AdmissionEnvironment>;
export type AdmissionBindings = z.infer<typeof AdmissionBindings>;
export type ReconcileEnvironment = z.infer<typeof ReconcileEnvironment>;
export type GatewayEnvironment = z.infer<typeof GatewayEnvironment>;
export type GatewayBindings = z.infer<typeof GatewayBindings>;

/** Their values are never printed. */
const SECRET: ReadonlySet<string> = new Set([
  'PATH_SECRETS',
  'API_TOKEN',
  'UPSTASH_REDIS_REST_TOKEN',
  'CREDENTIALS',
  'HYPERDRIVE',
]);

/** The environment as the schema reads it, or one error that lists everything that is wrong with it. Empty means absent. */
export function readEnvironment<Schema extends z.ZodType>(
  schema: Schema,
  environment: Readonly<Record<string, unknown>>,
): z.infer<Schema> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  throw new Error(listProblems(read.error.issues.map((issue) => toLine(issue, given))));
}

/** What is wrong, a line each. */
export function listProblems(lines: ReadonlyArray<string>): string {
  return `the environment is not right:\n${[...new Set(lines)].map((line) => `  ${line}`).join('\n')}`;
}

function toLine({ path, message }: z.core.$ZodIssue, given: Readonly<Record<string, unknown>>): string {
  const name = String(path[0] ?? '');
  const value = given[name];
  if (value === undefined) return `${name} is not set: ${message}`;
  return SECRET.has(name) ? `${name} ${message}` : `${name}=${JSON.stringify(value)}: ${message}`;
}

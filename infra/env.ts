// What does each function read from its environment? The only place that does; everything wrong is said at once, at start.
import * as z from 'zod';

const Port = z.coerce.number().int().min(0).max(65_535);
const List = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

const Server = {
  PORT: Port.default(8080).describe('Where the function listens.'),
  HOST: z.string().default('0.0.0.0').describe('On which address.'),
  LOG_LEVEL: z.enum(['info', 'warn', 'error']).default('info'),
};

const Api = {
  KUBECONFIG: z.string().optional().describe('A kubeconfig file; absent: the service account of the Pod.'),
  KUBERNETES_SERVICE_HOST: z.string().optional(),
  KUBERNETES_SERVICE_PORT: z.string().optional(),
};

export const AdmissionEnvironment = z.object({
  ...Server,
  ...Api,
  TLS_CERT_FILE: z.string().optional().describe('PEM; with TLS_KEY_FILE the function speaks HTTPS itself.'),
  TLS_KEY_FILE: z.string().optional(),
  PATH_SECRETS: List.optional().describe(
    'Unguessable path segments, separated by commas, for a function on a public address.',
  ),
  OWN_USERS: List.optional().describe("Reconcile's identity, whose writes are not judged."),
});

export const ReconcileEnvironment = z.object({
  ...Server,
  ...Api,
  GATEWAY_PROCESSES: z.enum(['one', 'many']).default('many').describe('`one`: a store Secret may say `memory`.'),
});

export const GatewayEnvironment = z.object({
  ...Server,
  SNAPSHOT_FILE: z.string().default('/etc/gateway/snapshot/snapshot.json').describe('The compiled instance.'),
  CREDENTIALS_DIR: z
    .string()
    .default('/etc/gateway/credentials')
    .describe('One folder per Secret, one file per entry.'),
  DATABASE_DIR: z.string().default('/etc/gateway/database').describe('Files host, username, password and dbname.'),
  OUTBOX_DIR: z.string().default('/var/lib/gateway/outbox').describe('Outlives the process: an emptyDir at least.'),
});

export type AdmissionEnvironment = z.infer<typeof AdmissionEnvironment>;
export type ReconcileEnvironment = z.infer<typeof ReconcileEnvironment>;
export type GatewayEnvironment = z.infer<typeof GatewayEnvironment>;

/** The environment as the schema reads it, or one error that lists everything that is wrong with it. */
export function readEnvironment<Schema extends z.ZodType>(
  schema: Schema,
  environment: Readonly<Record<string, string | undefined>>,
): z.infer<Schema> {
  const read = schema.safeParse(environment);
  if (read.success) return read.data;
  const lines = read.error.issues.map(({ path, message }) => {
    const name = path.join('.');
    return `  ${name}=${JSON.stringify(environment[name])}: ${message}`;
  });
  throw new Error(`the environment is not right:\n${lines.join('\n')}`);
}

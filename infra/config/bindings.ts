// What does each function read from the bindings of its Worker?
import { isMap } from '#crds/shapes.ts';
import { httpsAddress, image, processes, RECONCILE_TOKEN_IS, segments, tokens } from './readers.ts';
import { bound, matching, refuse, required, text, type ValuesOf, withDefault } from './variable.ts';

const workerApi = {
  API_SERVER: required(httpsAddress, 'Of the API server.'),
  API_TOKEN: required(text, "Of the function's service account."),
};

/** Bindings of a Worker that are texts; set the secret ones with `wrangler secret put`. */
export const AdmissionBindings = {
  variables: {
    ...workerApi,
    PATH_SECRETS: required(segments),
    RECONCILE_TOKEN: required(tokens, RECONCILE_TOKEN_IS),
  },
};
export const ReconcileBindings = {
  variables: {
    ...workerApi,
    RECONCILE_TOKEN: required(tokens, RECONCILE_TOKEN_IS),
    GATEWAY_PROCESSES: processes,
    GATEWAY_IMAGE: image,
  },
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
const toCredentials = (text: string): Credentials => {
  const json: unknown = parsed(text) ?? refuse('is not JSON');
  return areCredentials(json) ? json : refuse('is not an object of Secrets with entries');
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
      toCredentials,
      '{}',
      'Credential Secrets as JSON: name of the Secret to its entries, `{"openai":{"apiKey":"…"}}`.',
    ),
  },
};

export type AdmissionBindings = ValuesOf<typeof AdmissionBindings>;
export type GatewayBindings = ValuesOf<typeof GatewayBindings>;

// Bindings of the Workers. Their comments are rows of docs/reference/environment.md, with links as that page needs
// them; one without a comment has the meaning of the variable of the same name in environments.ts.
import { parseJson } from '#core/json/json.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import {
  count,
  domains,
  httpsAddress,
  image,
  instancePath,
  list,
  processes,
  retention,
  segments,
  tokens,
} from './readers.ts';
import {
  bound,
  boundIfThere,
  matching,
  optional,
  refuse,
  required,
  text,
  type ValuesOf,
  withDefault,
} from './variable.ts';

/** Secret ones are set with `wrangler secret put`. */
const common = {
  /** `https://` address of the API server. */
  API_SERVER: required(httpsAddress),
  /** Token of the function's service account. */
  API_TOKEN: required(text),
  /**
   * Token of at least 16 characters that the reconciler requires; of two, separated by a comma, the webhook sends the
   * first.
   */
  RECONCILE_TOKEN: required(tokens),
};

export interface KeyValueNamespace {
  get(key: string): Promise<string | null>;
  put(key: string, value: string): Promise<void>;
  delete(key: string): Promise<void>;
}
const isNamespace = (given: unknown): given is KeyValueNamespace =>
  typeof given === 'object' && given !== null && 'get' in given && 'put' in given;

interface Service {
  fetch(request: Request): Promise<Response>;
}
const isService = (given: unknown): given is Service => typeof given === 'object' && given !== null && 'fetch' in given;

export const AdmissionBindings = {
  variables: {
    ...common,
    PATH_SECRETS: required(segments),
    SECRET_METADATA_PREFIXES: optional(domains),
    OWN_USERS: withDefault(list, 'system:serviceaccount:gateway-operator:reconcile'),
    /** Service binding of the reconciler, for triggers; absent: no triggers, so the next resync finds changes. */
    RECONCILE: boundIfThere(isService, 'is not a service'),
  },
};
export const ReconcileBindings = {
  variables: {
    ...common,
    GATEWAY_PROCESSES: processes,
    GATEWAY_IMAGE: image,
    GATEWAY_PULL_SECRETS: optional(list),
    SECRET_METADATA_PREFIXES: optional(domains),
    RETAIN_DAYS: withDefault(retention, '400'),
    /**
     * Requests that your Cloudflare plan allows to one invocation, see
     * [batches](../install/workers.md#resyncs-in-batches).
     */
    SUBREQUESTS: withDefault(count, '1000'),
    /** KV namespace that the reconciler writes snapshots to; absent: all gateways run in the cluster. */
    SNAPSHOTS: boundIfThere(isNamespace, 'is not a KV namespace'),
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

/** Values by the name of their Secret, then of their entry. */
type Credentials = Readonly<Record<string, Readonly<Record<string, string>>>>;
const areCredentials = (json: unknown): json is Credentials =>
  isMap(json) &&
  Object.values(json).every((one) => isMap(one) && Object.values(one).every((value) => typeof value === 'string'));
const toCredentials = (text: string): Credentials => {
  const json: unknown = parseJson(text) ?? refuse('is not JSON');
  return areCredentials(json) ? json : refuse('is not an object of Secrets with entries');
};

const upstashAddress = matching(/^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost)[:/])/, 'is not an https:// address');

export const GatewayBindings = {
  variables: {
    /** The instance's database. */
    HYPERDRIVE: bound(isHyperdrive, 'is not a Hyperdrive binding'),
    /** `NAMESPACE/NAME` of the instance that it serves. */
    INSTANCE: required(instancePath),
    /** KV namespace that it reads its snapshot from. */
    SNAPSHOTS: bound(isNamespace, 'is not a KV namespace'),
    /** Address of the instance's Redis. */
    UPSTASH_REDIS_REST_URL: required(upstashAddress),
    /** Its token, which must be allowed to write. */
    UPSTASH_REDIS_REST_TOKEN: required(text),
    /** Credential Secrets as JSON, name to data: `{"openai":{"apiKey":"…"}}`. */
    CREDENTIALS: withDefault(toCredentials, '{}'),
  },
};

export type AdmissionBindings = ValuesOf<typeof AdmissionBindings>;
export type ReconcileBindings = ValuesOf<typeof ReconcileBindings>;
export type GatewayBindings = ValuesOf<typeof GatewayBindings>;

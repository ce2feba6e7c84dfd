// Bindings of the Workers, as docs/reference/environment.md lists them.
import { parseJson } from '#core/json/json.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { count, domains, httpsAddress, image, instancePath, list, processes, segments, tokens } from './readers.ts';
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

/**
 * The API server's address, the token of the function's service account, and reconcile's. Secret ones are set with
 * `wrangler secret put`.
 */
const common = {
  API_SERVER: required(httpsAddress),
  API_TOKEN: required(text),
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
    /** Reconcile, for triggers after an object was admitted. Absent: the schedule finds changes. */
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
    /** Requests that the plan allows to one invocation. */
    SUBREQUESTS: withDefault(count, '1000'),
    /** The namespace that gateways read their snapshots from. Absent: all gateways run in the cluster. */
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
    /** The database of the instance. */
    HYPERDRIVE: bound(isHyperdrive, 'is not a Hyperdrive binding'),
    /** The instance that it serves. */
    INSTANCE: required(instancePath),
    /** The namespace that reconcile writes snapshots to. */
    SNAPSHOTS: bound(isNamespace, 'is not a KV namespace'),
    UPSTASH_REDIS_REST_URL: required(upstashAddress),
    /** The token must be allowed to write. */
    UPSTASH_REDIS_REST_TOKEN: required(text),
    /** Credential Secrets as JSON: name of the Secret to its entries, `{"openai":{"apiKey":"…"}}`. */
    CREDENTIALS: withDefault(toCredentials, '{}'),
  },
};

export type AdmissionBindings = ValuesOf<typeof AdmissionBindings>;
export type ReconcileBindings = ValuesOf<typeof ReconcileBindings>;
export type GatewayBindings = ValuesOf<typeof GatewayBindings>;

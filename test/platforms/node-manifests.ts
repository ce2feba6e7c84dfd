// Manifests for tests of real Pods: the page's example with the addresses of a test, an instance on Redis, and keys.
import type { DatabaseConnection } from '#core/ports/backends.ts';
import { SHARED_CREDENTIALS_ANNOTATION } from '#crds/names/group.ts';
import type { ModelStats } from '../../infra/platforms/local/sample-upstream/server.ts';

export const UPSTREAM_KEY = 'upstream-key-of-tests';
export const STORE_PASSWORD = 'secret-of-the-store';
const TWO = { type: 'Deployment', scale: { min: 2, max: 2 } };

/** The page's example with the addresses of this test. */
export function mine(text: string, { username, password, dbname }: DatabaseConnection): string {
  return text
    .replace('host: postgres.example.com', 'host: postgres')
    .replace(
      'username: gateway, password: change-me, dbname: gateway, sslmode: verify-full, sslrootcert: system',
      `username: ${username}, password: ${password}, dbname: ${dbname}, sslmode: disable, sslrootcert: ""`,
    )
    .replace('sk-change-me', UPSTREAM_KEY)
    .replace('{ model: openai/gpt-5-mini }', '{ model: openai/gpt-5-mini, apiBase: "http://upstream.default.svc/v1" }');
}

export const keyOf = (name: string, change: object = {}) => ({
  apiVersion: 'auth.gateway-operator.dev/v1alpha1',
  kind: 'VirtualKey',
  metadata: { name, namespace: 'default' },
  spec: {
    keyAlias: name,
    models: ['gpt-5-mini'],
    maxBudget: '5',
    budgetDuration: '30d',
    connectionRef: { instanceRef: { name: 'llm', namespace: 'default' } },
    ...change,
  },
});

interface TeamOptions {
  readonly name?: string;
  /** What follows the names of the hosts of PostgreSQL and Redis, as `.team.svc`. */
  readonly domain?: string;
  readonly workload?: object;
}

/** An instance with its Secrets and a key; by default two processes on Redis. */
export function teamOf({ username, password, dbname }: DatabaseConnection, options: TeamOptions = {}) {
  const { name = 'team', domain = '', workload = TWO } = options;
  const secret = (part: string, stringData: object) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `${name}-${part}`, namespace: 'team' },
    stringData,
  });
  const model = (id: string) => ({
    identifier: id,
    modelName: id,
    requiresAuth: true,
    modelCredentials: { nameRef: `${name}-provider`, keys: { apiKey: 'apiKey' } },
    gatewayParams: {
      model: `openai/${id}`,
      apiBase: 'http://upstream.team.svc/v1',
      inputCostPerMillionTokens: '1',
      outputCostPerMillionTokens: '2',
    },
  });
  const items: ReadonlyArray<{ readonly kind: string; readonly [field: string]: unknown }> = [
    secret('database', { host: `postgres${domain}`, username, password, dbname }),
    secret('store', { host: `redis${domain}`, port: '6379', password: STORE_PASSWORD }),
    secret('provider', { apiKey: UPSTREAM_KEY }),
    {
      apiVersion: 'instance.gateway-operator.dev/v1alpha1',
      kind: 'GatewayInstance',
      metadata: { name, namespace: 'team', annotations: { [SHARED_CREDENTIALS_ANNOTATION]: 'allowed' } },
      spec: {
        databaseSecretRef: {
          nameRef: `${name}-database`,
          keys: { hostSecret: 'host', usernameSecret: 'username', passwordSecret: 'password', dbnameSecret: 'dbname' },
        },
        redisSecretRef: {
          nameRef: `${name}-store`,
          keys: { hostSecret: 'host', portSecret: 'port', passwordSecret: 'password' },
        },
        workload,
        models: [model('echo'), model('slow')],
      },
    },
    {
      ...keyOf(name, {
        models: ['echo', 'slow'],
        connectionRef: { instanceRef: { name, namespace: 'team' } },
      }),
      metadata: { name, namespace: 'team' },
    },
  ];
  return { apiVersion: 'v1', kind: 'List', items };
}

/** Nano-dollars at the prices of `teamOf`. */
export const costOf = ({ promptTokens = 0, completionTokens = 0 }: Partial<ModelStats> = {}) =>
  1000 * promptTokens + 2000 * completionTokens;

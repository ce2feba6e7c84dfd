// Checks of an installation: the admission webhook refuses a wrong instance, and a call with a key value is charged.
import { fromBase64 } from '#core/json/base64.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { type RetryDependencies, retry } from './retry.ts';

export interface CheckDependencies extends RetryDependencies {
  readonly cluster: Cluster;
  readonly fetch: typeof fetch;
}

/** The refusal of either webhook. */
const REFUSED = /webhook "\w+\.gateway-operator\.dev" denied the request/;
/**
 * Two model entries that share a credential Secret. Only the admission webhook finds this, also in a dry run.
 */
const MODEL_ENTRIES = ['first', 'second'].map((identifier) => ({
  identifier,
  modelName: 'check',
  requiresAuth: true,
  modelCredentials: { nameRef: 'check', keys: { apiKey: 'apiKey' } },
  gatewayParams: { model: 'openai/check' },
}));

/**
 * Returns the refusal of a wrong instance. A dry run, so nothing is written. Rejects if no webhook reviews the instance.
 */
export function checkAdmission({ cluster, ...time }: CheckDependencies, namespace: string): Promise<string> {
  const { apiVersion, kind } = gatewayInstances;
  const common = { hostSecret: 'host', passwordSecret: 'password' };
  const databaseSecretRef = {
    nameRef: 'check',
    keys: { ...common, usernameSecret: 'username', dbnameSecret: 'dbname' },
  };
  const redisSecretRef = { nameRef: 'check', keys: { ...common, portSecret: 'port' } };
  const spec = { databaseSecretRef, redisSecretRef, models: MODEL_ENTRIES };
  const instance = { apiVersion, kind, metadata: { name: 'check', namespace }, spec };
  return retry(async () => {
    const written = await cluster.apply(gatewayInstances, instance, { isDry: true });
    if (written.ok) throw new Error(`a wrong GatewayInstance was accepted: no webhook of the operator reviews it`);
    if (!REFUSED.test(written.message)) throw new Error(written.message);
    return written.message;
  }, time);
}

export interface TestCall {
  /** `status.url` of an instance. */
  readonly url: string;
  readonly model: string;
  /** The Secret of a VirtualKey. */
  readonly secret: { readonly namespace: string; readonly name: string };
}

/** Sends one chat completion, which is charged. Returns the reply, and the spend of the key before and after in dollars. */
export async function makeTestCall({ cluster, fetch, ...time }: CheckDependencies, { url, model, secret }: TestCall) {
  const value = await retry(async () => {
    const found = await cluster.get(RESOURCES.secrets, secret.namespace, secret.name);
    const { key } = (found?.data ?? {}) as Readonly<Record<string, string>>;
    if (key === undefined)
      throw new Error(
        `Secret ${secret.namespace}/${secret.name} does not exist: kubectl describe shows why its VirtualKey is not ready`,
      );
    return fromBase64(key);
  }, time);
  const ask = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const headers = { authorization: `Bearer ${value}`, 'content-type': 'application/json' };
    const reply = await fetch(`${url}${path}`, { ...init, headers, signal: AbortSignal.timeout(20_000) });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${url}${path} answered ${reply.status}: ${text}`);
    return JSON.parse(text);
  };
  const spend = async () => ((await ask('/key')) as { readonly currentSpend: string }).currentSpend;
  const before = await retry(spend, time);
  const messages = [{ role: 'user', content: 'Say hello to a platform engineer.' }];
  const completion = (await ask('/chat/completions', {
    method: 'POST',
    body: JSON.stringify({ model, messages }),
  })) as {
    readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>;
  };
  return { reply: completion.choices[0]?.message.content ?? '', before, after: await spend() };
}

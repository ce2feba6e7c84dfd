// Checks of an installation: admission refuses a wrong instance in its own words, and a call with a key is paid.
import { fromBase64 } from '#core/json/base64.ts';
import { type Cluster, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances } from '#crds/kinds/kinds.ts';
import { type RetryDependencies, retry } from './retry.ts';

export interface CheckDependencies extends RetryDependencies {
  readonly cluster: Cluster;
  readonly fetch: typeof fetch;
}

/** Either webhook: both review the whole object. */
const REFUSED = /webhook "\w+\.gateway-operator\.dev" denied the request/;
/**
 * Two entries that share a credential Secret: the one mistake that only admission finds, and refuses in a dry run too.
 */
const ENTRIES = ['first', 'second'].map((identifier) => ({
  identifier,
  modelName: 'check',
  requiresAuth: true,
  modelCredentials: { nameRef: 'check', keys: { apiKey: 'apiKey' } },
  gatewayParams: { model: 'openai/check' },
}));

/**
 * Answers the refusal of a wrong instance: a dry run, so nothing is written. Rejects when nobody reviews the instance.
 */
export function checkAdmission({ cluster, ...time }: CheckDependencies, namespace: string): Promise<string> {
  const { apiVersion, kind } = gatewayInstances;
  const common = { hostSecret: 'host', passwordSecret: 'password' };
  const databaseSecretRef = {
    nameRef: 'check',
    keys: { ...common, usernameSecret: 'username', dbnameSecret: 'dbname' },
  };
  const redisSecretRef = { nameRef: 'check', keys: { ...common, portSecret: 'port' } };
  const spec = { databaseSecretRef, redisSecretRef, models: ENTRIES };
  const instance = { apiVersion, kind, metadata: { name: 'check', namespace }, spec };
  return retry(async () => {
    const written = await cluster.apply(gatewayInstances, instance, { isDry: true });
    if (written.ok) throw new Error(`a wrong GatewayInstance was accepted: no webhook of the operator is in force`);
    if (!REFUSED.test(written.message)) throw new Error(written.message);
    return written.message;
  }, time);
}

export interface PaidCall {
  /** `status.url` of an instance. */
  readonly url: string;
  readonly model: string;
  /** The Secret of a key. */
  readonly secret: { readonly namespace: string; readonly name: string };
}

/** Pays one chat completion; answers the reply and the spend of the key before and after, in dollars. */
export async function payForCall({ cluster, fetch, ...time }: CheckDependencies, { url, model, secret }: PaidCall) {
  const value = await retry(async () => {
    const found = await cluster.get(RESOURCES.secrets, secret.namespace, secret.name);
    const { key } = (found?.data ?? {}) as Readonly<Record<string, string>>;
    if (key === undefined)
      throw new Error(
        `Secret ${secret.namespace}/${secret.name} is not there: kubectl describe says why its key is not ready`,
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

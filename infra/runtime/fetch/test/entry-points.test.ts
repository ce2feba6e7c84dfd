// Entry points for platforms that call a fetch handler.
import { expect, test } from 'vitest';
import { teams } from '#crds/names/resources.ts';
import { INHERITED_NAMES } from '../../../../test/support/inherited-names.ts';
import { createAdmissionFetch } from '../admission.ts';
import { createGatewayFetch, credentialsIn } from '../gateway.ts';
import { createReconcileFetch } from '../reconcile.ts';

const TOKEN = 'a-token-of-the-tests';
const API = { API_SERVER: 'https://127.0.0.1:1', API_TOKEN: 'x', RECONCILE_TOKEN: TOKEN };

test.each([
  [
    'admission',
    createAdmissionFetch,
    { ...API, PATH_SECRETS: 'short', RECONCILE: 'elsewhere' },
    ['PATH_SECRETS', 'RECONCILE'],
  ],
  ['admission', createAdmissionFetch, {}, ['API_SERVER', 'API_TOKEN', 'RECONCILE_TOKEN', 'PATH_SECRETS']],
  ['reconcile', createReconcileFetch, { ...API, SUBREQUESTS: '0' }, ['SUBREQUESTS']],
  [
    'gateway',
    createGatewayFetch,
    { CREDENTIALS: '[]' },
    ['HYPERDRIVE', 'INSTANCE', 'SNAPSHOTS', 'UPSTASH_REDIS_REST_URL', 'UPSTASH_REDIS_REST_TOKEN', 'CREDENTIALS'],
  ],
])('%s is not made of a wrong environment, and one message lists everything', (_, create, environment, wrong) => {
  let message = '';
  try {
    create(environment);
  } catch (error) {
    message = String(error);
  }
  const lines = message.split('\n').slice(1);
  expect(lines.map((line) => /[A-Z_]+/.exec(line)?.[0])).toEqual(wrong);
});

test('admission is a fetch handler, with or without the context of a Worker', async () => {
  const { fetch } = createAdmissionFetch({ ...API, PATH_SECRETS: 'an-unguessable-segment' });
  const answer = await fetch(new Request('https://admission/healthz'));
  expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
  expect((await fetch(new Request('https://admission/validate', { method: 'POST' }))).status).toBe(404);
});

test('admission as a Worker does not review what the reconciler writes', async () => {
  const segment = 'an-unguessable-segment';
  const { fetch } = createAdmissionFetch({ ...API, PATH_SECRETS: segment });
  const review = async (username: string) => {
    const { apiVersion, group, version, kind } = teams;
    const object = { apiVersion, kind, metadata: { name: 'research', namespace: 'default' }, spec: {} };
    const request = { uid: '1', kind: { group, version, kind }, operation: 'CREATE', userInfo: { username }, object };
    const body = JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    const answer = await fetch(new Request(`https://admission/${segment}/mutate`, { method: 'POST', body }));
    return (await answer.json()) as { response: { allowed: boolean } };
  };
  expect((await review('ada')).response.allowed).toBe(false);
  expect((await review('system:serviceaccount:gateway-operator:reconcile')).response.allowed).toBe(true);
});

test('reconcile is a fetch handler that answers nobody without its token', async () => {
  const { fetch } = createReconcileFetch(API);
  expect((await fetch(new Request('https://reconcile/', { method: 'POST' }))).status).toBe(401);
});

test('a gateway as a fetch handler leaves no timer behind its answers, also where no key was asked for', async () => {
  const { fetch } = createGatewayFetch({
    SNAPSHOTS: { get: async () => null, put: async () => {}, delete: async () => {} },
    INSTANCE: 'default/sample',
    HYPERDRIVE: { host: '127.0.0.1', port: 1, user: 'u', password: 'p', database: 'd' },
    UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1',
    UPSTASH_REDIS_REST_TOKEN: 'x',
  });
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const ended: unknown[] = [];
  const execution = { waitUntil: (promise: Promise<unknown>) => void ended.push(promise) };
  for (let at = 0; at < 50; at += 1) await fetch(new Request('https://gateway/models'), undefined, execution);
  await Promise.all(ended);
  // Other tests of this process have timers too.
  expect(timers()).toBeLessThan(before + 25);
});

test('a gateway is a fetch handler: without a snapshot no key is known, and the store is not asked', async () => {
  const asked: string[] = [];
  const SNAPSHOTS = {
    get: async (path: string) => {
      asked.push(path);
      return null;
    },
    put: async () => {},
    delete: async () => {},
  };
  const { fetch } = createGatewayFetch({
    SNAPSHOTS,
    INSTANCE: 'default/sample',
    HYPERDRIVE: { host: '127.0.0.1', port: 1, user: 'u', password: 'p', database: 'd' },
    UPSTASH_REDIS_REST_URL: 'http://127.0.0.1:1',
    UPSTASH_REDIS_REST_TOKEN: 'x',
  });
  const answer = await fetch(new Request('https://gateway/models'));
  expect(answer.status).toBe(401);
  expect(asked).toEqual(['default/sample']);
});

test.each(INHERITED_NAMES)('no Secret and no entry is called %s unless the binding has one', (name) => {
  const { read } = credentialsIn({ openai: { apiKey: 'k' } });
  for (const other of ['openai', 'name', ...INHERITED_NAMES])
    expect([read(name, other), read(other, name)]).toEqual([undefined, undefined]);
  expect(credentialsIn(JSON.parse(`{"${name}":{"${name}":"k"}}`)).read(name, name)).toBe('k');
});

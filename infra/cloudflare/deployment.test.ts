// Settings of a deployment to Workers: what is uploaded, and what is refused.
import { expect, test } from 'vitest';
import { documented } from '../../test/platforms/documented.ts';
import { toUploads } from './deployment.ts';

const DOCUMENTED = documented('docs/workers.md', 'settings', 'json');

test('the documented settings are complete: secrets go apart, ids become bindings, the rest is plain', () => {
  const uploads = toUploads(DOCUMENTED);
  expect(uploads.map(({ config: { name } }) => name)).toEqual([
    'gateway-operator-reconcile',
    'gateway-operator-admission',
    'sample-gateway',
  ]);
  const [reconcile, admission, gateway] = uploads;
  expect(Object.keys(reconcile?.secrets ?? {})).toEqual(['API_TOKEN', 'RECONCILE_TOKEN']);
  expect(reconcile?.config).toMatchObject({
    main: 'reconcile.mjs',
    workers_dev: false,
    triggers: { crons: ['* * * * *'] },
    vars: { API_SERVER: 'https://api.cluster.example.com', GATEWAY_PROCESSES: 'many' },
    kv_namespaces: [{ binding: 'SNAPSHOTS', id: expect.stringMatching(/^[0-9a-f]{32}$/) }],
  });
  expect(admission?.secrets).toHaveProperty('PATH_SECRETS');
  expect(gateway?.config).toMatchObject({
    main: 'gateway.mjs',
    vars: { INSTANCE: 'default/sample' },
    kv_namespaces: [{ binding: 'SNAPSHOTS' }],
    hyperdrive: [{ binding: 'HYPERDRIVE' }],
  });
  const plain = JSON.stringify(uploads.map(({ config }) => config));
  for (const secret of uploads.flatMap(({ secrets }) => Object.values(secrets))) expect(plain).not.toContain(secret);
});

test('everything that is missing or malformed is listed at once, by Worker, and no secret with it', () => {
  const settings = {
    reconcile: { API_SERVER: 'http://plain', API_TOKEN: 'x', SNAPSHOTS: 'none', SUBREQUESTS: 'many' },
    gateways: { one: { INSTANCE: 'sample', CREDENTIALS: 'secret', COLOUR: 'red' } },
    gateway: {},
  };
  expect(() => toUploads(JSON.stringify(settings))).toThrow(`the settings are not right:
  gateway is none of reconcile, admission, gateways
  gateway-operator-reconcile: API_SERVER="http://plain": is not an https:// address
  gateway-operator-reconcile: RECONCILE_TOKEN is not set: it has no default
  gateway-operator-reconcile: SUBREQUESTS="many": is not a number from 1
  gateway-operator-reconcile: SNAPSHOTS="none": is not a KV namespace
  gateway-operator-admission: API_SERVER is not set: it has no default
  gateway-operator-admission: API_TOKEN is not set: it has no default
  gateway-operator-admission: RECONCILE_TOKEN is not set: it has no default
  gateway-operator-admission: PATH_SECRETS is not set: it has no default
  one: HYPERDRIVE is not set: bind it
  one: INSTANCE="sample": is not NAMESPACE/NAME of an instance
  one: SNAPSHOTS is not set: bind it
  one: UPSTASH_REDIS_REST_URL is not set: it has no default
  one: UPSTASH_REDIS_REST_TOKEN is not set: it has no default
  one: CREDENTIALS is not JSON
  one: COLOUR is no setting of it`);
  expect(() => toUploads('no')).toThrow('the settings are not a JSON object');
});

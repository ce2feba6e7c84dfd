// Settings of a deployment to Workers: what is uploaded, and what is refused.
import { expect, test } from 'vitest';
import { documented, filledSettings } from '../../../../test/platforms/documented.ts';
import { toUploads } from '../deployment.ts';

const DOCUMENTED = documented('docs/install/workers.md', 'settings', 'json');
const FILLED = filledSettings();

test('the documented settings are complete: secrets go apart, ids become bindings, the rest is plain', () => {
  const uploads = toUploads(FILLED);
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
    vars: { API_SERVER: 'https://api.own.example.com', GATEWAY_PROCESSES: 'many' },
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

test('everything that is missing or malformed is listed together, by Worker, and no secret with it', () => {
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
  expect(() => toUploads('[]', 'workers.json')).toThrow('workers.json: is not a JSON object');
});

test('the sample is refused until each of its values is replaced', () => {
  expect(() => toUploads(DOCUMENTED)).toThrow(`the settings are not right:
  gateway-operator-reconcile: API_SERVER has the value of the sample: write your own
  gateway-operator-reconcile: API_TOKEN has the value of the sample: write your own
  gateway-operator-reconcile: RECONCILE_TOKEN has the value of the sample: write your own
  gateway-operator-reconcile: SNAPSHOTS has the value of the sample: write your own
  gateway-operator-admission: API_SERVER has the value of the sample: write your own
  gateway-operator-admission: API_TOKEN has the value of the sample: write your own
  gateway-operator-admission: RECONCILE_TOKEN has the value of the sample: write your own
  gateway-operator-admission: PATH_SECRETS has the value of the sample: write your own
  sample-gateway: SNAPSHOTS has the value of the sample: write your own
  sample-gateway: HYPERDRIVE has the value of the sample: write your own
  sample-gateway: UPSTASH_REDIS_REST_URL has the value of the sample: write your own
  sample-gateway: UPSTASH_REDIS_REST_TOKEN has the value of the sample: write your own
  sample-gateway: CREDENTIALS has the value of the sample: write your own`);
});

test('a token or a namespace that functions must have alike, and do not, is refused', () => {
  const settings = JSON.parse(FILLED);
  settings.reconcile.RECONCILE_TOKEN = 'another-token-of-16-characters, own-a-token-of-your-own-choice';
  expect(toUploads(JSON.stringify(settings))).toHaveLength(3);
  settings.admission.RECONCILE_TOKEN = 'a-third-token-of-16-characters';
  settings.gateways['sample-gateway'].SNAPSHOTS = 'f'.repeat(32);
  expect(() => toUploads(JSON.stringify(settings))).toThrow(`the settings are not right:
  gateway-operator-admission: RECONCILE_TOKEN is none of those of gateway-operator-reconcile, which would refuse every trigger: write the same into both
  sample-gateway: SNAPSHOTS is another namespace than that of gateway-operator-reconcile, which writes the snapshots: write the same into both`);
});

test.each([
  ['{\n  "reconcile": sk-secret\n}', 'line 2, column 16'],
  ['{\n  "reconcile": "sk-secret" "x"\n}', 'line 2, column 28'],
  ['{\n  "reconcile": "sk-secret",\n}', 'line 3, column 1'],
  ['{\n  "reconcile": {"a": "sk-secret"', 'line 2, column 33'],
  ['', 'line 1, column 1'],
])('text that is not JSON is refused by file and place, without a secret: %j', (text, place) => {
  expect(() => toUploads(text, 'workers.json')).toThrow(new Error(`workers.json: is not JSON at ${place}`));
});

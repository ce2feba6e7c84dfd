// The leak detector on a real cluster: it finds every key or password that is shown.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { run } from './child.ts';
import { startCluster } from './clusters.ts';
import { whyNoControlPlane } from './control-plane.ts';
import { eventually } from './eventually.ts';
import { type LeakDetector, openLeakDetector } from './secret-leak-detector.ts';

const MINTED = 'sk-'.padEnd(52, 'a');
const NEXT = 'sk-'.padEnd(52, 'b');
const PASSWORD = 'the-password-of-nobody';
const encode = (text: string) => Buffer.from(text).toString('base64');

let plane: Awaited<ReturnType<typeof startCluster>>;
let detector: LeakDetector;
beforeAll(async () => {
  plane = await startCluster(whyNoControlPlane() === undefined ? 'real' : 'embedded');
  // The embedded cluster runs in this process, so it must not block meanwhile.
  const applied = await run('kubectl', ['apply', '-f', 'crds/manifests'], { KUBECONFIG: plane.kubeconfig });
  expect(applied).toMatchObject({ code: 0 });
  const paths = () => plane.call('GET', '/apis/auth.gateway-operator.dev/v1alpha1/virtualkeys');
  await eventually(paths, ({ code }) => code === 200);
  detector = await openLeakDetector(plane.kubeconfig);
});
afterAll(async () => {
  await detector?.stop();
  await plane?.stop();
});

const create = async (path: string, object: object) => expect((await plane.call('POST', path, object)).code).toBe(201);

test('a key that a rotation replaced long ago is found in a ConfigMap, a password in a process’s output', async () => {
  const secrets = '/api/v1/namespaces/default/secrets';
  const metadata = { name: 'chat-key' };
  await create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: { key: encode(MINTED) } });
  const data = { key: encode(NEXT), password: encode(PASSWORD) };
  const merge = { 'content-type': 'application/merge-patch+json' };
  expect((await plane.call('PATCH', `${secrets}/chat-key`, { data }, merge)).code).toBe(200);
  await eventually(
    async () => detector.values,
    (values) => [MINTED, NEXT, PASSWORD].every((value) => values.has(value)),
  );
  expect(await detector.search(['nothing of it'])).toEqual([]);

  await create('/api/v1/namespaces/default/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'leak' },
    data: { note: `it was ${MINTED}` },
  });
  expect(await detector.search(['nothing of it'])).toEqual([MINTED]);
  expect([...(await detector.search([`connecting as gateway:${PASSWORD}@db`]))].sort()).toEqual(
    [MINTED, PASSWORD].sort(),
  );
});

test("only the status of a key may show a value: not its spec, and no other kind's status", async () => {
  const connectionRef = { instanceRef: { name: 'main', namespace: 'default' } };
  const keys = '/apis/auth.gateway-operator.dev/v1alpha1/namespaces/default';
  const key = (spec: object) => ({
    apiVersion: 'auth.gateway-operator.dev/v1alpha1',
    kind: 'VirtualKey',
    metadata: { name: 'chat' },
    spec: { keyAlias: 'chat', maxBudget: '1', budgetDuration: '30d', connectionRef, ...spec },
  });
  await create(`${keys}/virtualkeys`, key({}));
  const merge = { 'content-type': 'application/merge-patch+json' };
  const status = { status: { keyValue: NEXT } };
  expect((await plane.call('PATCH', `${keys}/virtualkeys/chat/status`, status, merge)).code).toBe(200);
  expect(await detector.search([])).toEqual([MINTED]);
  const body = { metadata: { annotations: { note: NEXT } } };
  expect((await plane.call('PATCH', `${keys}/virtualkeys/chat`, body, merge)).code).toBe(200);
  expect([...(await detector.search([]))].sort()).toEqual([MINTED, NEXT].sort());
});

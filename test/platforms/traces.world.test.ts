// What does a collector get of the real processes? All three functions as their bundles, one trace from a review to its reconciliation, and nothing secret.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { put } from '../../infra/local/cluster/manifests.ts';
import { webhookConfigurations } from '../../infra/manifests/webhooks.ts';
import { DEPLOYABLES, writeBundles } from '../../infra/tools/build.ts';
import { type Collector, startCollector } from '../collector.ts';
import { eventually } from '../eventually.ts';
import { mountSample } from './mounts.ts';
import { ADMISSION_PATH, RECONCILE_TOKEN, startNode } from './node-process.ts';
import { startWorld, type TestWorld, UPSTREAM_KEY } from './world.ts';

const PARENT = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };

let world: TestWorld;
let collector: Collector;
const stopping: Array<() => Promise<unknown>> = [];

beforeAll(async () => {
  [world, collector] = await Promise.all([startWorld(), startCollector()]);
  await writeBundles(
    world.folder,
    DEPLOYABLES.filter(({ platform }) => platform === 'node'),
  );
});
afterAll(async () => {
  for (const stop of stopping) await stop();
  await world?.stop();
  await collector?.close();
});

const start = async (name: string, environment: Readonly<Record<string, string>>) => {
  const started = await startNode(join(world.folder, `node/${name}.mjs`), {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    ...environment,
  });
  stopping.push(() => started.stop());
  return started;
};

test('one trace goes from the review of a key to the look that makes it usable, and another through its request', async () => {
  const reconcile = await start('reconcile', {
    KUBECONFIG: world.kubeconfig,
    GATEWAY_PROCESSES: 'one',
    RECONCILE_TOKEN,
  });
  const files = { TLS_CERT_FILE: join(world.folder, 'hook.crt'), TLS_KEY_FILE: join(world.folder, 'hook.key') };
  writeFileSync(files.TLS_CERT_FILE, world.certificates.cert);
  writeFileSync(files.TLS_KEY_FILE, world.certificates.key);
  const admission = await start('admission', {
    PATH_SECRETS: ADMISSION_PATH,
    KUBECONFIG: world.kubeconfig,
    RECONCILE_URL: reconcile.url,
    RECONCILE_TOKEN,
    ...files,
  });
  const objects = world.sample();
  await world.apply(objects.filter(({ kind }) => kind !== 'VirtualKey'));
  await fetch(reconcile.url, { method: 'POST', headers: { authorization: `Bearer ${RECONCILE_TOKEN}` } });
  const target = { type: 'url', base: `${admission.url}/${ADMISSION_PATH}` } as const;
  for (const one of webhookConfigurations({ target, caBundle: world.certificates.ca }))
    await put(world.cluster, one, true);
  await world.apply(objects.filter(({ kind }) => kind === 'VirtualKey'));
  const status = await eventually(
    async () => (await world.cluster.get(virtualKeys, 'default', 'example-service'))?.status as Status | undefined,
    (found) => found?.isActive === true,
  );

  const gateway = await start('gateway', { ...(await mountSample(world.cluster, join(world.folder, 'mounts'))) });
  const secret = await world.cluster.get(RESOURCES.secrets, 'default', status?.keySecretRef ?? '');
  const { key: encoded = '' } = (secret?.data ?? {}) as { key?: string };
  const key = Buffer.from(encoded, 'base64').toString();
  const answer = await fetch(`${gateway.url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, traceparent: `00-${PARENT.traceId}-${PARENT.spanId}-01` },
    body: JSON.stringify({ model: 'sample-small', messages: [{ role: 'user', content: 'the words of a prompt' }] }),
  });
  expect(answer.status).toBe(200);
  const reply = (await answer.json()) as { choices: ReadonlyArray<{ message: { content: string } }> };
  // What is left is told when they end.
  for (const stop of stopping.splice(0)) expect(await stop()).toBe(0);

  const spans = collector.spans();
  const named = (name: string) => spans.filter((span) => span.name === name);
  expect(new Set(spans.map(({ service }) => service))).toEqual(
    new Set(['gateway-operator-admission', 'gateway-operator-reconcile', 'gateway-operator-gateway']),
  );
  expect(collector.posts.every(({ headers }) => headers.authorization === 'Bearer of-the-collector')).toBe(true);
  const made = named('reconcile CreateSecret').find((span) => JSON.stringify(span).includes('"example-service"'));
  const [review] = named('POST /validate').filter(({ traceId }) => traceId === made?.traceId);
  const [look] = named('reconcile').filter(({ traceId }) => traceId === made?.traceId);
  expect(look?.parentSpanId).toBe(review?.spanId);
  expect(spans.filter((span) => span.parentSpanId === review?.spanId).map(({ name }) => name)).toContain(
    'get gatewayinstances',
  );

  const [request] = named('POST /chat/completions');
  expect(request).toMatchObject({ traceId: PARENT.traceId, parentSpanId: PARENT.spanId, kind: 2 });
  const steps = spans.filter((span) => span.parentSpanId === request?.spanId).map(({ name }) => name);
  expect(steps).toEqual(['hold', expect.stringMatching(/^chat /), 'settle']);

  expect(key).toMatch(/^sk-/);
  const { content } = reply.choices[0]?.message ?? { content: '' };
  expect(content).not.toBe('');
  for (const secret of [key, UPSTREAM_KEY, world.database.password, world.token, 'words of a prompt', content])
    expect(collector.text()).not.toContain(secret);
});

interface Status {
  readonly isActive: boolean;
  readonly keySecretRef: string;
}

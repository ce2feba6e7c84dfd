// What does a collector get of the real processes? All three functions as their bundles, one trace from a review to its
// reconciliation, and nothing secret.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { put } from '../../infra/packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts';
import { eventually } from '../support/eventually.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { mountSample } from './mounts.ts';
import { ADMISSION_PATH, RECONCILE_TOKEN, startNode } from './node-process.ts';
import { startWorld, type TestWorld, UPSTREAM_KEY } from './world.ts';

const PARENT = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) };

let world: TestWorld;
let collector: Collector;
const stopping: Array<() => Promise<unknown>> = [];

beforeAll(async () => {
  [world, collector] = await Promise.all([sharedPostgres().then(startWorld), startCollector()]);
  await linkBundles(world.folder);
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
  const base = `${admission.url}/${ADMISSION_PATH}`;
  for (const one of webhookConfigurations({ base, caBundle: world.certificates.ca }))
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
  const reviewed = { 'gateway_operator.kind': 'VirtualKey', 'gateway_operator.name': 'example-service' };
  const reviews = named('POST /validate').filter((span) => {
    const attributes = attributesOf(span);
    return Object.entries(reviewed).every(([name, value]) => attributes[name] === value);
  });
  const runs = named('POST /').filter((span) => 'gateway_operator.actions.PutSecret' in attributesOf(span));
  const [review] = reviews.filter(({ spanId }) => runs.some(({ parentSpanId }) => parentSpanId === spanId));
  expect(review && attributesOf(review)).toMatchObject({ ...reviewed, 'gateway_operator.allowed': true });

  const [request] = named('POST /chat/completions');
  expect(request).toMatchObject({ traceId: PARENT.traceId, parentSpanId: PARENT.spanId, kind: 2 });
  expect(request && attributesOf(request)).toMatchObject({
    'gateway_operator.request_id': answer.headers.get('x-request-id'),
    'gen_ai.request.model': 'sample-small',
    'http.response.status_code': 200,
    'gateway_operator.end': 'complete',
  });

  expect(key).toMatch(/^sk-/);
  const { content } = reply.choices[0]?.message ?? { content: '' };
  expect(content).not.toBe('');
  for (const secret of [key, UPSTREAM_KEY, world.database.password, world.token, 'words of a prompt', content])
    expect(collector.text()).not.toContain(secret);
});

const attributesOf = ({ attributes }: CollectedSpan) =>
  Object.fromEntries(attributes.map(({ key: name, value }) => [name, Object.values(value)[0]]));

interface Status {
  readonly isActive: boolean;
  readonly keySecretRef: string;
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WEBHOOK_CONFIGURATIONS } from '../../../../../functions/reconcile/certificates/objects.ts';
import { createMemoryCluster } from '../../../../../test/doubles/cluster.ts';
import { put, readDocuments } from '../../../../packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../../../packaging/manifests/webhooks.ts';
import { nodeDependencies } from '../../../../runtime/node/platform.ts';
import { findInstallation, RUNNERS, removeWebhooks } from '../../cluster/installation.ts';

const INSTALL = join(import.meta.dirname, '../../../kubernetes/install.yaml');
const LOCAL = 'https://127.0.0.1:40002/segment';

const withWebhooks = async (base?: string) => {
  const cluster = createMemoryCluster(nodeDependencies());
  for (const one of webhookConfigurations(base === undefined ? {} : { base })) await put(cluster, one, true);
  return cluster;
};

test.each([
  [undefined, 'calls Service gateway-operator/admission'],
  ['https://admission.example.com/segment', 'calls https://admission.example.com/segment/'],
])('webhooks that call another machine are an installed operator (%s)', async (base, call) => {
  expect(await findInstallation(await withWebhooks(base))).toEqual([
    expect.stringContaining(`MutatingWebhookConfiguration gateway-operator ${call}`),
    expect.stringContaining(`ValidatingWebhookConfiguration gateway-operator ${call}`),
  ]);
});

test.each(RUNNERS)('a $kind of the manifests is an installed operator, also without webhooks', async (resource) => {
  const cluster = createMemoryCluster(nodeDependencies());
  const objects = readDocuments(readFileSync(INSTALL, 'utf8')).filter(({ kind }) => kind === resource.kind);
  for (const object of objects) await cluster.create(resource, object);
  const named = objects.map(({ metadata }) => `${resource.kind} gateway-operator/${metadata.name}`);
  expect(named).not.toEqual([]);
  expect(await findInstallation(cluster)).toEqual(named);
});

test("webhooks of a killed local stack and other people's Deployments are no installed operator", async () => {
  const cluster = await withWebhooks(LOCAL);
  const metadata = { name: 'admission', namespace: 'shop', labels: { 'app.kubernetes.io/part-of': 'shop' } };
  await cluster.create(RUNNERS[0], { apiVersion: 'apps/v1', kind: 'Deployment', metadata });
  expect(await findInstallation(cluster)).toEqual([]);
});

test.each([
  [LOCAL, 0],
  ['https://127.0.0.1:40002/other', 2],
  [`${LOCAL}2`, 2],
  [undefined, 2],
])('a stop removes the webhooks of this stack alone (%s: %i stay)', async (base, stay) => {
  const cluster = await withWebhooks(base);
  await removeWebhooks(cluster, LOCAL);
  expect(WEBHOOK_CONFIGURATIONS.flatMap(cluster.objects)).toHaveLength(stay);
});

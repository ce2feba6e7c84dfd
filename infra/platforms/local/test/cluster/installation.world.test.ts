import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startCluster } from '../../../../../test/support/clusters.ts';
import type { TestControlPlane } from '../../../../../test/support/control-plane.ts';
import { runStack, startTestStack } from '../../../../../test/support/stack.ts';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts';
import { webhookConfigurations } from '../../../../packaging/manifests/webhooks.ts';

const HOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

let plane: TestControlPlane;
let folder: string;

beforeAll(async () => {
  plane = await startCluster('embedded');
});
beforeEach(() => {
  folder = join(temporaryFolder(), 'state');
});
afterAll(() => plane.stop());

const start = (kubeconfig: string) => runStack(['--state', folder, '--empty', '--reset', '--cluster', kubeconfig]);
const namesAt = async (path: string) => {
  const { items } = (await plane.call('GET', path)).body as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
};

test('a cluster with an installed operator is rejected before anything is written', async () => {
  const [hook] = webhookConfigurations({});
  const { body: before } = await plane.call('POST', HOOKS, hook);
  const { code, stderr } = await start(plane.kubeconfig);
  expect(stderr).toBe(
    `--cluster: ${plane.kubeconfig}: the cluster has an installed operator: MutatingWebhookConfiguration gateway-operator calls Service gateway-operator/admission. The local stack would replace its webhooks and delete its gateways. Name another cluster, or remove the operator first (docs/install/uninstall.md). Nothing was changed.\n`,
  );
  expect(code).toBe(2);
  expect((await plane.call('GET', `${HOOKS}/gateway-operator`)).body).toEqual(before);
  expect(await namesAt(CRDS)).toEqual([]);
  expect(existsSync(folder)).toBe(false);
  await plane.call('DELETE', `${HOOKS}/gateway-operator`);
});

test('an API server on another machine is rejected before it is called', async () => {
  const kubeconfig = join(temporaryFolder(), 'kubeconfig');
  const elsewhere = readFileSync(plane.kubeconfig, 'utf8').replace(plane.url, 'https://192.0.2.1:6443');
  writeFileSync(kubeconfig, elsewhere);
  const { code, stderr } = await start(kubeconfig);
  expect(stderr).toContain('https://192.0.2.1:6443, which is not an address of this machine');
  expect(code).toBe(2);
  expect(existsSync(folder)).toBe(false);
});

test('a stop leaves the kinds and no webhook that rejects writes; the next start makes it again', async () => {
  const args = ['--empty', '--cluster', plane.kubeconfig];
  const first = await startTestStack(args, folder);
  expect(await namesAt(HOOKS)).toEqual(['gateway-operator']);
  expect(await first.stop()).toBe(0);
  expect(await namesAt(HOOKS)).toEqual([]);
  expect(await namesAt(CRDS)).toHaveLength(4);
  const second = await startTestStack(args, folder);
  expect(await namesAt(HOOKS)).toEqual(['gateway-operator']);
  await second.kill();
  // The webhook of a killed stack hinders no start.
  const third = await startTestStack(args, folder);
  expect(await third.stop()).toBe(0);
  expect(await namesAt(HOOKS)).toEqual([]);
});

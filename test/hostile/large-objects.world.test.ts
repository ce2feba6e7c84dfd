// Secrets and keys as large as etcd lets tenants make them, in the memory that the Pods of the chart have.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { GOOD, modelEntry, objectOf } from '../admission/fixtures.ts';
import { type NodeProcess, startAdmission, startReconcile } from '../platforms/node-process.ts';
import { reviewOf } from '../platforms/review.ts';
import { linkBundles } from '../support/shared-servers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { LARGE_KEYS, type LargeApiServer, startLargeApi } from './api-server.ts';
import { type HostileServer, listen } from './server.ts';

const CHART = join(import.meta.dirname, '../../infra/packaging/helm/gateway-operator/values.yaml');
const chart = parse(readFileSync(CHART, 'utf8'));
const MIB = { admission: 256, reconcile: 1024 };
/** Each instance of a tenant names so many Secrets. */
const SECRETS = 60;
const REVIEWS = 2;
const INSTANCES = 14;

const names = Array.from({ length: SECRETS }, (_, index) => `big-${index}`);
const instance = (secrets: ReadonlyArray<string>, metadata = {}) => {
  const models = secrets.map((nameRef) =>
    modelEntry(nameRef, { modelCredentials: { nameRef, keys: { ...LARGE_KEYS, apiKey: 'k0' } } }),
  );
  return objectOf('GatewayInstance', { ...GOOD.GatewayInstance, models }, metadata);
};
const all = Array.from({ length: INSTANCES }, (_, index) =>
  instance(names, { name: `main-${index}`, uid: `uid-${index}`, finalizers: ['gateway-operator.dev/finalizer'] }),
);
const large = objectOf('VirtualKey', {
  ...{ ...GOOD.VirtualKey, models: ['big-0'] },
  metadata: { x: 'x'.repeat(345_000) },
});

let silent: HostileServer;
let folder: string;
const apis: LargeApiServer[] = [];
beforeAll(async () => {
  silent = await listen(() => undefined);
  folder = temporaryFolder();
  await linkBundles(folder);
});
afterAll(async () => {
  for (const api of apis) api.stop();
  await silent?.stop();
});

async function environmentOf(name: 'admission' | 'reconcile', objects: Parameters<typeof startLargeApi>[0]) {
  const api = await startLargeApi(objects);
  apis.push(api);
  return { KUBECONFIG: api.writeKubeconfig(folder), NODE_OPTIONS: String(chart[name].nodeOptions) };
}

/** The most memory that it has had, in MiB. */
function peakOf({ pid }: NodeProcess): number {
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}

test('admission reviews instances that name many large Secrets, or that lose a model of large keys', async () => {
  const admission = await startAdmission(
    join(folder, 'node/admission.mjs'),
    await environmentOf('admission', { key: large }),
  );
  const review = async (object: object, more: object = {}): Promise<number> => {
    const body = JSON.stringify(reviewOf(object, { dryRun: true, ...more }));
    const answer = await fetch(`${admission.base}/validate?timeout=30s`, { method: 'POST', body });
    await answer.text();
    return answer.status;
  };
  const many = Array.from({ length: REVIEWS }, () => review(instance(names)));
  expect(await review(instance(['big-0']))).toBe(200);
  const update = { operation: 'UPDATE', oldObject: instance(['big-0', 'big-1']) };
  many.push(...Array.from({ length: REVIEWS }, () => review(instance(['big-1']), update)));
  expect(await Promise.all(many)).toEqual(many.map(() => 200));
  expect(peakOf(admission)).toBeLessThan(MIB.admission);
  await admission.stop();
}, 120_000);

test('the reconciler looks at instances that name many large Secrets, and whose databases are silent', async () => {
  const { nameRef, keys } = GOOD.GatewayInstance.databaseSecretRef;
  const values = {
    hostSecret: `127.0.0.1:${silent.port}`,
    usernameSecret: 'u',
    passwordSecret: 'p',
    dbnameSecret: 'd',
  };
  const database = Object.entries(keys).map(([member, key]) => [key, values[member as keyof typeof values] ?? 'x']);
  const secrets = { [nameRef]: Object.fromEntries(database) };
  const reconcile = await startReconcile(
    join(folder, 'node/reconcile.mjs'),
    await environmentOf('reconcile', { instances: all, secrets }),
  );
  const report = await reconcile.ask();
  expect([report.status, await report.json()]).toMatchObject([200, { observed: { GatewayInstance: INSTANCES } }]);

  expect(peakOf(reconcile)).toBeLessThan(MIB.reconcile);
  await reconcile.stop();
}, 120_000);

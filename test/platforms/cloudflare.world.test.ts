// Do admission and reconcile run in real workerd, against a cluster and a database?
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import type { WorkerName } from '../../infra/platforms/cloudflare/workers.ts';
import { eventually } from '../support/eventually.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { testUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { filledSettings } from './documented.ts';
import { type RunningWorkers, startWorkers, type WorkerOfTest } from './miniflare.ts';
import { RECONCILE_TOKEN } from './node-process.ts';
import { reviewOf } from './review.ts';
import { GATEWAY_URL, startWorld, type TestWorld } from './world.ts';

const SEGMENT = 'an-unguessable-segment';

const whyNoWrangler = process.env.WRANGLER
  ? undefined
  : 'WRANGLER names no wrangler, which is 230 MB and no dependency: npm install -g wrangler@4';

testUnless(
  whyNoWrangler,
  'wrangler takes what the documented settings deploy, and its dry run uploads nothing',
  async () => {
    const file = join(temporaryFolder(), 'workers.json');
    writeFileSync(file, filledSettings());
    const args = [join(import.meta.dirname, '../../infra/platforms/cloudflare/deploy.ts'), file, '--dry-run'];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout.match(/--dry-run: exiting now/g)).toHaveLength(3);
    for (const binding of ['env.RECONCILE ', 'env.SNAPSHOTS ', 'env.HYPERDRIVE ', 'env.INSTANCE ', 'env.API_SERVER '])
      expect(stdout).toContain(binding);
    expect(stdout).not.toContain('sk-change-me');
  },
  60_000,
);

describe('Cloudflare Workers', () => {
  let world: TestWorld;
  let workers: RunningWorkers;
  let worker: (name: WorkerName, bindings?: Record<string, string>, services?: Record<string, string>) => WorkerOfTest;
  let ca: string;

  beforeAll(async () => {
    world = await startWorld(await sharedPostgres());
    await linkBundles(world.folder);
    ca = join(world.folder, 'ca.pem');
    writeFileSync(ca, world.certificates.ca);
    worker = (name, bindings = {}, services = {}) => ({
      name,
      scriptPath: join(world.folder, `cloudflare/${name}.mjs`),
      bindings: { API_SERVER: world.url, API_TOKEN: world.token, RECONCILE_TOKEN, ...bindings },
      services,
    });
    workers = await startWorkers(
      [
        worker('admission', { PATH_SECRETS: `${SEGMENT},another-unguessable-one` }, { RECONCILE: 'reconcile' }),
        worker('reconcile', { GATEWAY_PROCESSES: 'one' }),
      ],
      ca,
    );
  });
  afterAll(async () => {
    await workers?.stop();
    await world?.stop();
  });

  const review = async (object: object, path = `${SEGMENT}/validate`, more: object = {}) => {
    const body = JSON.stringify(reviewOf(object, more));
    const headers = { 'content-type': 'application/json' };
    return fetch(`${workers.url}/${path}?timeout=5s`, { method: 'POST', headers, body });
  };
  const keyNamed = (name: string, models: string[]) => ({
    apiVersion: 'auth.gateway-operator.dev/v1alpha1',
    kind: 'VirtualKey',
    metadata: { name, namespace: 'default' },
    spec: {
      keyAlias: name,
      models,
      maxBudget: '10',
      budgetDuration: '30d',
      connectionRef: { instanceRef: { name: 'sample', namespace: 'default' } },
    },
  });
  const statusOf = async (kind: string, name: string) =>
    (await world.cluster.get(resourceOf(kind), 'default', name))?.status as Record<string, unknown> | undefined;
  const readyOf = async (kind: string, name: string) =>
    ((await statusOf(kind, name))?.conditions as Array<Record<string, string>> | undefined)?.find(
      ({ type }) => type === 'Ready',
    );

  test('the cron trigger resyncs: the instance stands, its keys are minted', async () => {
    await world.apply(world.sample());
    expect(await workers.scheduled('reconcile'), workers.printed()).toBe('ok');
    expect(await readyOf('GatewayInstance', 'sample')).toMatchObject({ status: 'True', reason: 'Ready' });
    expect((await statusOf('GatewayInstance', 'sample'))?.url).toBe(GATEWAY_URL);
    const status = await statusOf('VirtualKey', 'example-service');
    expect(status).toMatchObject({ isActive: true, keySecretRef: 'example-service-key' });
    const secret = await world.cluster.get(RESOURCES.secrets, 'default', 'example-service-key');
    const { key } = (secret?.data ?? {}) as { key?: string };
    expect(Buffer.from(key ?? '', 'base64').toString()).toBe(status?.keyValue);
    const [row] = await world.postgres.query<{ count: string }>(
      world.database,
      'select count(*) from gateway_operator.key_value',
    );
    // The key of the sample, and the one that alice's User makes.
    expect(row?.count).toBe('2');
  });

  test('a second resync over unchanged objects writes nothing', async () => {
    const before = await world.cluster.list(virtualKeys);
    expect(await workers.scheduled('reconcile')).toBe('ok');
    expect(await world.cluster.list(virtualKeys)).toEqual(before);
  });

  test('a review is answered: allowed, with the patch of the mutating one', async () => {
    const good = keyNamed('by-worker', ['sample-small']);
    const validated = (await (await review(good)).json()) as { response: object };
    expect(validated.response).toEqual({ uid: 'review-1', allowed: true });
    const mutated = (await (await review(good, 'another-unguessable-one/mutate')).json()) as {
      response: { patchType: string; patch: string };
    };
    expect(mutated.response).toMatchObject({ allowed: true, patchType: 'JSONPatch' });
    expect(atob(mutated.response.patch)).toContain('requested-by');
  });

  test('a review is answered: denied, with what to do', async () => {
    const answer = await review(keyNamed('by-worker', ['sample-smal']));
    expect(answer.status).toBe(200);
    const { response } = (await answer.json()) as { response: { allowed: boolean; status: { message: string } } };
    expect(response.allowed).toBe(false);
    expect(response.status.message).toContain('"sample-small"');
  });

  test('an unknown path and a path without the segment are not found; another method is not allowed', async () => {
    const good = keyNamed('by-worker', ['sample-small']);
    for (const path of ['validate', 'wrong-unguessable-one/validate', `${SEGMENT}/`, 'elsewhere']) {
      expect((await review(good, path)).status, path).toBe(404);
    }
    expect((await fetch(`${workers.url}/${SEGMENT}/validate`)).status).toBe(405);
  });

  test('an admitted object is reconciled by the trigger, without waiting for the schedule', async () => {
    const good = keyNamed('triggered', ['sample-small']);
    expect((await review(good)).status).toBe(200);
    await world.apply([good]);
    await eventually(
      () => statusOf('VirtualKey', 'triggered'),
      (status) => status?.isActive === true,
    );
  });

  const askWorker = (url: string, headers = { authorization: `Bearer ${RECONCILE_TOKEN}` }) =>
    fetch(url, { method: 'POST', headers });

  test('reconcile answers nobody without its token, whatever route it was given', async () => {
    const open = await startWorkers([worker('reconcile')], ca);
    try {
      expect((await askWorker(open.url, { authorization: 'Bearer wrong' })).status).toBe(401);
      expect((await fetch(open.url, { method: 'POST' })).status).toBe(401);
    } finally {
      await open.stop();
    }
  });

  test('with many gateway processes, which is the default, a store in memory is refused', async () => {
    const strict = await startWorkers([worker('reconcile')], ca);
    try {
      const resync = async () => {
        const report = await (await askWorker(strict.url)).json();
        expect(report).toMatchObject({ observed: { GatewayInstance: 1 }, failed: {} });
        return readyOf('GatewayInstance', 'sample');
      };
      // A late trigger of the test before may still reach the reconcile that serves one process, and say the opposite
      // once more.
      const ready = await eventually(resync, (condition) => condition?.reason === 'StoreNotShared');
      expect(ready).toMatchObject({ status: 'False' });
    } finally {
      await strict.stop();
    }
  });

  test('bindings that are not right are all listed in the log, and nothing is answered with them', async () => {
    const wrong = await startWorkers([worker('admission', { API_SERVER: 'http://plain', PATH_SECRETS: 'short' })], ca);
    try {
      expect((await fetch(`${wrong.url}/short/validate`, { method: 'POST', body: '{}' })).status).toBe(500);
      await eventually(
        async () => wrong.printed(),
        (text) => text.includes('not answered'),
      );
      const { why } = JSON.parse(wrong.printed().trim());
      expect(why).toBe(`the environment is not right:
  API_SERVER="http://plain": is not an https:// address
  PATH_SECRETS needs 16 to 128 letters, digits, -, ., _ or ~ in each segment`);
    } finally {
      await wrong.stop();
    }
  });
});

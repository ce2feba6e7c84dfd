// The last release and this version, one after the other and back, on the same cluster and database: keys work, and
// their spend continues.
import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { lastRelease } from '../../infra/tools/last-release.ts';
import { run } from '../support/child.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless, whyNotAll } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { mountSample } from './mounts.ts';
import { resyncOnce, startNode } from './node-process.ts';
import { startWorld, type TestWorld } from './world.ts';

const release = lastRelease();
const missing = whyNotAll ?? (release === undefined ? 'no tag yet: the first release has none before it' : undefined);

describeUnless(missing, `this version and ${release}`, () => {
  let world: TestWorld;
  /** Folders with the bundles. */
  let versions: Readonly<Record<'before' | 'now', string>>;

  beforeAll(async () => {
    world = await startWorld(await sharedPostgres());
    await linkBundles(world.folder);
    const source = temporaryFolder();
    const root = join(import.meta.dirname, '../..');
    const archive = execFileSync('git', ['archive', release ?? ''], { cwd: root, maxBuffer: 2 ** 30 });
    execFileSync('tar', ['-x', '-C', source], { input: archive });
    // Its own dependencies, where they are the same; a test of a release with others installs them first.
    symlinkSync(join(root, 'node_modules'), join(source, 'node_modules'));
    await run(process.execPath, [join(source, 'infra/tools/build.ts')], { cwd: source });
    versions = { now: world.folder, before: join(source, 'dist') };
    await world.apply(world.sample());
  }, 120_000);
  afterAll(() => world?.stop());

  const resync = async (version: keyof typeof versions) => {
    const bundle = join(versions[version], 'node/reconcile.mjs');
    return resyncOnce(bundle, { KUBECONFIG: world.kubeconfig, GATEWAY_PROCESSES: 'one' });
  };
  const keyValue = async () => {
    const key = await world.cluster.get(resourceOf('VirtualKey'), 'default', 'example-service');
    return (key?.status as { readonly keyValue?: string } | undefined)?.keyValue;
  };
  /**
   * Pays one call on a gateway of this version, which has the mounts and the journal of the previous one; answers the
   * spend after it.
   */
  const makeCall = async (version: keyof typeof versions): Promise<number> => {
    const mounts = await mountSample(world.cluster, join(world.folder, 'mounts'));
    const gateway = await startNode(join(versions[version], 'node/gateway.mjs'), { ...mounts });
    const headers = { authorization: `Bearer ${await keyValue()}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'sample-small', messages: [{ role: 'user', content: 'Say hello.' }] });
    try {
      const answer = await fetch(`${gateway.url}/chat/completions`, { method: 'POST', headers, body });
      expect(answer.status, await answer.text()).toBe(200);
      const { currentSpend } = (await (await fetch(`${gateway.url}/key`, { headers })).json()) as {
        currentSpend: string;
      };
      return Number(currentSpend);
    } finally {
      expect(await gateway.stop()).toBe(0);
    }
  };

  test('forth and back, a key keeps its value and its spend, and each resync ends without a failure', async () => {
    expect((await resync('before')).failed).toEqual({});
    const value = await keyValue();
    const spends = [await makeCall('before')];
    for (const version of ['now', 'before', 'now'] as const) {
      expect((await resync(version)).failed, version).toEqual({});
      expect(await keyValue()).toBe(value);
      spends.push(await makeCall(version));
    }
    expect(spends).toEqual(spends.toSorted((a, b) => a - b));
    expect(new Set(spends).size).toBe(spends.length);
  }, 120_000);
});

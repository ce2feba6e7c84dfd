// The image, unpacked: every program runs in it as a user without rights, on a root file system that nobody can write
// to.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONFIG, USER } from '../../infra/packaging/image/config.ts';
import { resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { type Child, run, startChild } from '../support/child.ts';
import { sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { whyNoBase, writeBase } from './image.ts';
import { mountSample } from './mounts.ts';
import { ADMISSION_PATH, RECONCILE_TOKEN } from './node-process.ts';
import { reviewOf } from './review.ts';
import { startWorld, type TestWorld } from './world.ts';

const why = whyNoBase ?? (process.getuid?.() === 0 ? undefined : 'only root may change its root file system');

/** The folder as root file system, read only but for the journal; `exec`, so that signals reach the program. */
const ENTER = `mount --bind "$0" "$0" && mount -t tmpfs -o uid=${USER} tmpfs "$0/var/lib/gateway/journal" &&
mount -o remount,ro,bind "$0" && exec chroot --userspec=${CONFIG.User} "$0" "$@"`;

describeUnless(why, 'the image', () => {
  let root: string;
  let world: TestWorld;
  const children: Child[] = [];

  beforeAll(async () => {
    const folder = temporaryFolder();
    root = join(folder, 'root');
    mkdirSync(root);
    writeBase(root);

    expect((await run('node', ['infra/packaging/image/main.ts', '--folder', root])).stderr).toBe('');

    mkdirSync(join(root, 'var/lib/gateway/journal'), { recursive: true });
    world = await startWorld(await sharedPostgres());

    await world.apply(world.sample());

    // Its own mode is for its owner alone.
    writeFileSync(join(root, 'tmp/kubeconfig'), readFileSync(world.kubeconfig));
  });
  afterAll(async () => {
    await Promise.all(children.map((child) => child.end()));
    await world?.stop();
  });

  const start = (name: string, more: Readonly<Record<string, string>> = {}) => {
    const program = ['node', `${CONFIG.WorkingDir}/dist/node/${name}.mjs`];
    const env = {
      ...CONFIG.Env,
      PATH: `${CONFIG.Env.PATH}:/usr/sbin:/sbin`,
      NODE_DEBUG_NATIVE: 'COMPILE_CACHE',
      HOST: '127.0.0.1',
      PORT: '0',
      METRICS_PORT: '0',
      KUBECONFIG: '/tmp/kubeconfig',
      ...more,
    };
    const child = startChild('unshare', ['--mount', 'sh', '-c', ENTER, root, ...program], { env });
    children.push(child);
    return child;
  };
  const addressOf = (child: Child) => child.prints(/"message":"listening".*"url":"([^"]+)"/);
  const statusOf = async (kind: string, name: string) =>
    (await world.cluster.get(resourceOf(kind), 'default', name))?.status as Record<string, unknown> | undefined;

  test('its five programs install, admit, serve a charged completion and are removed, from their compile cache', async () => {
    const reconcile = start('reconcile', { RECONCILE_TOKEN, GATEWAY_PROCESSES: 'one' });
    const RECONCILE_URL = await addressOf(reconcile);
    const { code, stderr, stdout } = await start('trigger', { RECONCILE_URL, RECONCILE_TOKEN }).ended;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('"failed":{}');

    const admission = start('admission', { PATH_SECRETS: ADMISSION_PATH });
    const review = await fetch(`${await addressOf(admission)}/${ADMISSION_PATH}/validate`, {
      method: 'POST',
      body: JSON.stringify(reviewOf(world.sample().find(({ kind }) => kind === 'VirtualKey') ?? {})),
    });
    expect(await review.json()).toMatchObject({ response: { allowed: true } });

    await mountSample(world.cluster, root);
    const gateway = start('gateway');
    const apiKey = String((await statusOf('VirtualKey', 'example-service'))?.keyValue);
    const openai = new OpenAI({ apiKey, baseURL: await addressOf(gateway), maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'Say hello.' }];
    const reply = await openai.chat.completions.create({ model: 'sample-small', messages });
    expect(reply.choices[0]?.message.content).toMatch(/\S/);

    const uninstalling = start('uninstall');
    const headers = { authorization: `Bearer ${RECONCILE_TOKEN}` };
    for (; uninstalling.isRunning(); await pause(500)) await fetch(RECONCILE_URL, { method: 'POST', headers });
    const uninstall = await uninstalling.ended;
    expect(uninstall.stdout).toContain('No webhook and no finalizer of the operator is left');
    for (const child of [reconcile, admission, gateway]) {
      expect(child.printed()).toMatch(/V8 code cache for ESM .* was accepted/);
      expect(child.printed()).not.toMatch(/V8 code cache for ESM .* was not initialized|rejected/);
      expect((await child.end()).code).toBe(0);
    }
  });

  test('nothing in it can be written, and there is no shell', async () => {
    const script = `require('node:fs').writeFileSync('/app/dist/node/gateway.mjs', '')`;
    const child = startChild('unshare', ['--mount', 'sh', '-c', ENTER, root, 'node', '-e', script]);
    expect((await child.ended).stderr).toMatch(/EROFS|EACCES/);
    const programs = ['bin', 'usr/bin', 'usr/local/bin'].flatMap((folder) => namesIn(join(root, folder)));
    expect(programs).toEqual(['node']);
  });

  test('its bill of materials and its licences name the same packages, and none that only tests or tools need', () => {
    const bill = JSON.parse(readFileSync(join(root, 'app/sbom.cdx.json'), 'utf8'));
    const names = bill.components.map(({ 'bom-ref': ref }: { 'bom-ref': string }) => ref.replace(/@(?=[^@]+$)/, ' '));
    const licences = readFileSync(join(root, 'app/licenses.txt'), 'utf8');
    for (const name of names) expect(licences).toMatch(new RegExp(`^${name.replaceAll('.', '\\.')} \\(`, 'm'));
    expect(names.map((name: string) => name.split(' ')[0])).toEqual(
      expect.arrayContaining(['pg', 'ioredis', 'hono', 'zod']),
    );
    expect(names.filter((name: string) => /^(vitest|esbuild|miniflare|typescript|tar|yaml) /.test(name))).toEqual([]);
  });
});

function namesIn(folder: string): ReadonlyArray<string> {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

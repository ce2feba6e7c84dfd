// The quickstart's page on a real node, word for word, from `helm install` to the last trace.
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RELEASE_VERSION } from '../../infra/runtime/config/release.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { deskIn, documented } from './documented.ts';
import { replays } from './node-pods.ts';
import { buildImage } from './real-node.ts';
import { type Rig, startRig, whyNoRig } from './rig.ts';

const PAGE = 'docs/install/quickstart.md';
const archives = process.env.TEST_QUICKSTART?.split(',');
const whyNoHelm = spawnSync('helm', ['version']).error === undefined ? undefined : 'no helm in the PATH';
const why =
  archives === undefined
    ? 'a node pulls no images: set TEST_QUICKSTART to archives of the images of PostgreSQL and Redis that infra/packaging/quickstart names, FILE,FILE'
    : (whyNoRig() ?? whyNoHelm);

describeUnless(why, 'the quickstart', () => {
  const folder = temporaryFolder();
  let rig: Rig;
  let desk: string;

  beforeAll(async () => {
    rig = await startRig();
    desk = deskIn(folder);
    await rig.importImage(await buildImage(folder, `docker.io/library/gateway-operator:${RELEASE_VERSION}`));
    for (const archive of archives ?? []) await rig.importImage(archive);
  }, 180_000);
  afterAll(() => rig?.stop());

  test('by the page: installed, a charged call by the check, and one by hand', async () => {
    const began = performance.now();
    await rig.type(documented(PAGE, 'install'), desk);
    const output = await rig.type(documented(PAGE, 'check'), desk);
    process.stdout.write(`  seen: ${Math.round(performance.now() - began)} ms from helm install to a charged call\n`);
    expect(output).toContain('admission answers: admission webhook "mutate.gateway-operator.dev" denied the request');
    expect(output).toMatch(/^spend {3}\$0 before, \$0\.\d+ after this call$/m);
    const byHand = await rig.type(documented(PAGE, 'call'), desk);
    expect(byHand).toContain('You said: Hello');
    expect(byHand).toMatch(/"currentSpend":"0\.0000\d+"/);
  }, 300_000);

  test('clean up: nothing is left', async () => {
    await rig.type(documented(PAGE, 'remove'), desk);
    expect(await replays(rig)).toEqual([]);
  }, 300_000);
});

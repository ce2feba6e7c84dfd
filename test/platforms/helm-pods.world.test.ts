// A release of Helm on real Pods: how long an installation takes, what it prints, and that gateways follow a rollback.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RELEASE_IMAGE } from '../../infra/runtime/config/release.ts';
import { CHART } from '../../infra/tools/chart.ts';
import { eventually } from '../support/eventually.ts';
import { whyNoRedis } from '../support/redis.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { documented } from './documented.ts';
import { mine } from './node-manifests.ts';
import { buildImage, type RealNode, startRealNode } from './real-node.ts';
import { whyNoRig } from './rig.ts';

const HELM = process.env.HELM ?? 'helm';
const [REPOSITORY, TAG] = RELEASE_IMAGE.split(/:(?=[^/:]+$)/);
const NEXT = `${TAG}-next`;
const RELEASE = ['gateway-operator', '--namespace=gateway-operator'];
/** Milliseconds: more than a minute of the schedule. */
const LONG = 120_000;

const whyNoHelm = spawnSync(HELM, ['version']).error && 'no helm in the PATH, and HELM names none';
const why = process.env.TEST_PODS
  ? (whyNoRig() ?? whyNoRedis() ?? whyNoHelm)
  : 'real Pods take minutes: set TEST_PODS=1';

describeUnless(why, 'a release of Helm, on real Pods', () => {
  let node: RealNode;

  beforeAll(async () => {
    node = await startRealNode();
    const folder = join(node.folder, 'next');
    mkdirSync(folder);
    await node.rig.importImage(await buildImage(folder, `${REPOSITORY}:${NEXT}`));
  }, 300_000);
  afterAll(() => node?.stop());

  const seconds = (began: number) => ((performance.now() - began) / 1000).toFixed(1);
  const helm = async (...args: string[]) => {
    const { code, stdout, stderr } = await node.rig.run(HELM, args);
    expect(`${code} ${stderr}`).toBe('0 ');
    return stdout;
  };
  const imageOf = (name: string) =>
    node.rig.kubectl(`get pods -l app.kubernetes.io/name=${name} -o jsonpath={.items[*].spec.containers[0].image} -A`);

  test(
    'an installation that waits ends when the admission webhook answers, and prints nothing but its notes',
    async () => {
      const began = performance.now();
      const image = `--set=image.repository=${REPOSITORY}`;
      const output = await helm('install', ...RELEASE, CHART, '--create-namespace', image, '--wait', '--timeout=120s');
      node.note(`${seconds(began)} s from helm install until it returns, with --wait`);
      expect(output).toContain('STATUS: deployed');
      const written = '{.webhooks[*].clientConfig.caBundle}';
      expect(
        await node.rig.kubectl(`get validatingwebhookconfiguration gateway-operator -o jsonpath=${written}`),
      ).toMatch(/^LS0t\S+ LS0t/);
    },
    LONG,
  );

  test(
    'its test succeeds and prints the log, as often as it is run',
    async () => {
      for (const _ of ['first', 'again'])
        expect(await helm('test', ...RELEASE, '--logs')).toContain('admission answers: admission webhook');
    },
    LONG,
  );

  test(
    'gateways follow an upgrade and a rollback, although no schedule asks',
    async () => {
      await node.rig.type(mine(documented('docs/install/first-gateway.md', 'first gateway'), node.database), node.desk);
      await node.rig.type(documented('docs/install/first-gateway.md', 'first gateway is ready'), node.desk);
      await node.rig.kubectl('-n gateway-operator patch cronjob reconcile -p {"spec":{"suspend":true}}');
      const follows = async (tag: string | undefined, ...command: string[]) => {
        const began = performance.now();
        await helm(...command);
        const images = () => Promise.all(['reconcile', 'gateway'].map(imageOf));
        const wanted = `${REPOSITORY}:${tag}`;
        await eventually(images, (both) => both.every((image) => image === wanted), LONG);
        await node.rig.kubectl('rollout status deployment/llm-gateway --timeout=60s');
        node.note(`${seconds(began)} s from helm ${command[0]} until the gateway runs the image of that version`);
      };
      await follows(NEXT, 'upgrade', ...RELEASE, CHART, '--reset-then-reuse-values', `--set=image.tag=${NEXT}`);
      await follows(TAG, 'rollback', ...RELEASE);
    },
    4 * LONG,
  );
});

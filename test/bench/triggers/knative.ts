// Knative's ApiServerSource adapter on a real API server. It cannot watch VirtualKeys, so the key is one that a User
// gets.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createCluster } from '#adapters/kubernetes/cluster.ts';
import { createKubeconfigTransport } from '#adapters/kubernetes/node.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { applyKinds, put } from '../../../infra/packaging/manifests/apply.ts';
import { DEPLOYABLES, writeBundles } from '../../../infra/tools/build.ts';
import { startReconcile } from '../../platforms/node-process.ts';
import { apply, sampleFor } from '../../platforms/world.ts';
import { run } from '../../support/child.ts';
import { eventually } from '../../support/eventually.ts';
import { runScript, startKnative } from '../../support/knative.ts';
import { startPostgres } from '../../support/postgres.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { makeUser, measure } from './keys.ts';

const TEST_KIT = process.env.GATEWAY_OPERATOR_ENVTEST_KIT ?? '';
const TIMEOUT = 90_000;

/** Why it cannot be measured here; undefined where it can. */
export const whyNoKnative = (): string | undefined =>
  existsSync(join(process.env.KUBEBUILDER_ASSETS ?? '', 'knative/apiserver_receive_adapter')) &&
  existsSync(join(TEST_KIT, 'start-knative.sh'))
    ? undefined
    : 'no Knative in KUBEBUILDER_ASSETS, or no GATEWAY_OPERATOR_ENVTEST_KIT';

export async function triggersOfKnative(count: number): Promise<number[]> {
  const folder = temporaryFolder();
  const closing: Array<() => Promise<unknown>> = [];
  try {
    const [knative, postgres] = await Promise.all([startKnative(folder, 'with nodes'), startPostgres()]);
    const { kubeconfig, state } = knative;
    closing.unshift(postgres.stop, knative.stop);
    const { request, close } = await createKubeconfigTransport(kubeconfig);
    closing.unshift(close);
    const cluster = createCluster({ request });
    await applyKinds(cluster);
    await writeBundles(
      folder,
      DEPLOYABLES.filter(({ output }) => output === 'node/reconcile.mjs'),
    );
    const reconcile = await startReconcile(join(folder, 'node/reconcile.mjs'), {
      KUBECONFIG: kubeconfig,
      GATEWAY_PROCESSES: 'one',
    });
    closing.unshift(() => reconcile.stop());
    await run(
      'kubectl',
      ['apply', '-f', 'infra/platforms/kubernetes/access.yaml', '-f', 'infra/platforms/knative/operator.yaml'],
      {
        KUBECONFIG: kubeconfig,
      },
    );
    await runScript('knative.sh', state, 'ready', 'gateway-operator/reconcile', reconcile.url);
    const sample = sampleFor(await postgres.createDatabase(), 'http://127.0.0.1:9');
    await apply(
      cluster,
      sample.filter(({ kind }) => kind === 'Secret' || kind === 'GatewayInstance'),
    );
    await reconcile.ask();
    const isReady = async () => {
      const args = ['-n', 'gateway-operator', 'get', 'apiserversource', 'changes', '-o', 'json'];
      return /"type": "Ready"/.test((await run('kubectl', args, { KUBECONFIG: kubeconfig })).stdout);
    };
    await eventually(isReady, Boolean, TIMEOUT);
    const adapter = Number(await runScript('knative.sh', state, 'apiserver', 'gateway-operator/changes'));
    closing.unshift(async () => process.kill(adapter));
    // The adapter posts changes after its watch starts, and does not report when that is.
    let touches = 0;
    const isHeard = async () => {
      touches += 1;
      await put(cluster, makeUser(`early${touches}`), true);
      const found = await Promise.all(
        Array.from({ length: touches }, (_, index) => cluster.get(virtualKeys, 'default', `early${index + 1}`)),
      );
      return found.some((key) => (key?.status as { isActive?: boolean } | undefined)?.isActive === true);
    };
    await eventually(isHeard, Boolean, TIMEOUT);
    return await measure({ kubeconfig, cluster }, count, makeUser);
  } finally {
    for (const close of closing) await close();
  }
}

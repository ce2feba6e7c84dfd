// The test kit's control plane with Knative's CRDs, webhooks and Eventing controller.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const TEST_KIT = process.env.GATEWAY_OPERATOR_ENVTEST_KIT ?? '';

/** Runs a script of the test kit, such as `start.sh`; returns what it prints. */
export const runScript = async (name: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(join(TEST_KIT, name), args)).stdout.trim();

export interface KnativeControlPlane {
  /** The path of a kubeconfig. */
  readonly kubeconfig: string;
  /** The folder that the scripts of the test kit call STATE. */
  readonly state: string;
  stop(): Promise<unknown>;
}

/**
 * Starts the control plane in a subfolder of `folder`. The webhooks listen on ports that were free a moment before: if
 * another process took one of them meanwhile, all is stopped and started a second time.
 */
export async function startKnative(folder: string, parts: 'with nodes' | 'bare'): Promise<KnativeControlPlane> {
  try {
    return await start(join(folder, 'state'), parts);
  } catch (error) {
    console.log(`Knative did not start, and is started again: ${error}`);
    return start(join(folder, 'state-2'), parts);
  }
}

async function start(state: string, parts: 'with nodes' | 'bare'): Promise<KnativeControlPlane> {
  const kubeconfig = await runScript('start.sh', state, ...(parts === 'bare' ? ['--no-controllers'] : []));
  const stop = () => promisify(execFile)(join(state, 'stop'));
  try {
    if (parts === 'with nodes') await runScript('start-nodes.sh', state);
    await runScript('start-knative.sh', state);
    return { kubeconfig, state, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

// Does the stock kubectl work against the embedded cluster as it does against a real API server?
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describeUnless } from '../../../test/unless.ts';
import { describeKubectl } from './kubectl-cases/describe-kubectl.ts';
import { startEmbedded, startReal } from './kubectl-cases/servers.ts';

describeKubectl('the embedded cluster', () => startEmbedded());

const why = whyNoRealOne();

describeUnless(why, 'for comparison', () => {
  describeKubectl('a real API server', startReal);
});

/** The cases need the controller manager too: it collects garbage and ends namespaces. */
function whyNoRealOne(): string | undefined {
  const folder = process.env.KUBEBUILDER_ASSETS;
  if (folder === undefined) return 'KUBEBUILDER_ASSETS is not set';
  const missing = ['etcd', 'kube-apiserver', 'kube-controller-manager'].filter(
    (name) => !existsSync(join(folder, name)),
  );
  return missing.length === 0 ? undefined : `${folder} (KUBEBUILDER_ASSETS) has no ${missing.join(' and no ')}`;
}

// The stock kubectl against the embedded API server and a real one.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describeSideBySide } from '../support/side-by-side.ts';
import { describeKubectl } from './kubectl/describe-kubectl.ts';
import { startEmbedded, startReal } from './servers.ts';

const SERVERS = [
  { name: 'the embedded cluster', why: undefined, start: () => startEmbedded() },
  // For comparison.
  { name: 'a real API server', why: whyNoRealOne(), start: startReal },
];

describeSideBySide(SERVERS, 'kubectl', ({ start }) => describeKubectl(start));

/**
 * What a real one does stays the same, and takes a minute. The cases need the controller manager too: it collects
 * garbage and ends namespaces.
 */
function whyNoRealOne(): string | undefined {
  if (process.env.COMPARE_KUBECTL === undefined)
    return 'the same cases on a real API server take a minute: set COMPARE_KUBECTL=1';
  const folder = process.env.KUBEBUILDER_ASSETS;
  if (folder === undefined) return 'KUBEBUILDER_ASSETS is not set';
  const missing = ['etcd', 'kube-apiserver', 'kube-controller-manager'].filter(
    (name) => !existsSync(join(folder, name)),
  );
  return missing.length === 0 ? undefined : `${folder} (KUBEBUILDER_ASSETS) has no ${missing.join(' and no ')}`;
}

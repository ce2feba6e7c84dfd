// Kubeconfig files of clusters on this machine.
import { stringify } from 'yaml';
import { writeWhole } from '../state/state.ts';

export interface Access {
  readonly url: string;
  /** The CA's certificate, PEM. */
  readonly ca: string;
  readonly token: string;
}

const NAME = 'gateway-operator';

export function toKubeconfig({ url, ca, token }: Access): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': NAME,
    clusters: [
      { name: NAME, cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
    ],
    users: [{ name: NAME, user: { token } }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
  });
}

export const writeKubeconfig = (file: string, access: Access): void => writeWhole(file, toKubeconfig(access));

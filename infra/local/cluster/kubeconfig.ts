// How does kubectl find a cluster of this machine?
import { chmodSync, renameSync, writeFileSync } from 'node:fs';
import { stringify } from 'yaml';

export type Access = {
  readonly url: string;
  /** The CA's certificate, PEM. */
  readonly ca: string;
  readonly token: string;
  /** Name of the cluster, user and context. */
  readonly name?: string;
};

export function toKubeconfig({ url, ca, token, name = 'gateway-operator' }: Access): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
  });
}

/** Writes it for the owner's eyes only, at once or not at all: a reader never sees half a file. */
export function writeKubeconfig(path: string, access: Access): void {
  const half = `${path}.${process.pid}.tmp`;
  writeFileSync(half, toKubeconfig(access), { mode: 0o600 });
  chmodSync(half, 0o600); // a file left over from before keeps its own mode
  renameSync(half, path);
}

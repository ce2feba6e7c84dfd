// API servers that tests start: the embedded one and a real one.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiServer, type ApiServer as EmbeddedApiServer } from '../../infra/apiserver/api-server.ts';
import { type Certificates, openCertificates } from '../../infra/platforms/local/cluster/certificates.ts';
import { writeKubeconfig } from '../../infra/platforms/local/cluster/kubeconfig.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { silentLog } from '../support/silent-log.ts';
import type { ApiServer } from './kubectl/harness.ts';

export type EmbeddedServer = ApiServer & {
  readonly server: EmbeddedApiServer;
  /** An administrator's. */
  readonly token: string;
  /** Good for 127.0.0.1. */
  readonly tls: Certificates;
};

/** The embedded API server, in memory unless a file is given. */
export async function startEmbedded(
  options: { file?: string; historyLength?: number; port?: number } = {},
): Promise<EmbeddedServer> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-cluster-'));
  const tls = await openCertificates(folder, new Date());
  const token = randomBytes(12).toString('hex');
  const server = createApiServer({ file: ':memory:', port: 0, tls, token, log: silentLog, ...options });
  const stop = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await server.start();
  } catch (cause) {
    await stop();
    throw cause;
  }
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, { url: server.url, ca: tls.ca, token });
  return { kubeconfig, server, token, tls, stop };
}

/** etcd, kube-apiserver and the controller manager of KUBEBUILDER_ASSETS. */
export async function startReal(): Promise<ApiServer> {
  const { kubeconfig, stop } = await startControlPlane({ controllers: 'all' });
  return { kubeconfig, stop };
}

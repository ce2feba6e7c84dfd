// A real kube-apiserver with etcd on this machine (`--cluster envtest`), and the controller manager if the binaries
// include it.
import { generateKeyPairSync } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../options.ts';
import type { Child, Children } from '../state/children.ts';
import { writeKubeconfig } from './kubeconfig.ts';

export interface ControlPlaneOptions {
  readonly children: Children;
  /** Folder of etcd's data, keys and logs. */
  readonly folder: string;
  /** Ports that are free. */
  readonly port: number;
  readonly etcdPort: number;
  /** The token of an administrator. */
  readonly token: string;
  /** PEM texts for 127.0.0.1, and the CA that signed them. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string };
  /** Controllers to run, by the controller manager's names for them; absent: all. */
  readonly controllers?: ReadonlyArray<string>;
  /** Admission plug-ins that are off by default. */
  readonly plugins?: ReadonlyArray<string>;
  /** False: etcd flushes nothing to the disk. */
  readonly isDurable?: boolean;
}

/** The reason why no real API server can start here; undefined: it can. */
export function missingAssets(): string | undefined {
  const folder = process.env.KUBEBUILDER_ASSETS || undefined;
  if (folder === undefined) return 'KUBEBUILDER_ASSETS is not set';
  const missing = ['etcd', 'kube-apiserver'].filter((name) => !existsSync(join(folder, name)));
  return missing.length === 0 ? undefined : `${folder} (KUBEBUILDER_ASSETS) has no ${missing.join(' and no ')}`;
}

/** The folder with etcd and kube-apiserver. Throws a UsageError that explains how to get one. */
export function envtestAssets(): string {
  const missing = missingAssets();
  if (missing === undefined) return process.env.KUBEBUILDER_ASSETS ?? '';
  throw new UsageError(
    `--cluster envtest: ${missing}. Set it to a folder with etcd and kube-apiserver (\`setup-envtest use -p path\` of controller-runtime prints one).`,
  );
}

/** Starts etcd and the API server, waits until it is ready, then starts the controller manager if there is one. */
export async function startControlPlane(options: ControlPlaneOptions) {
  const assets = envtestAssets();
  mkdirSync(options.folder, { recursive: true });
  const file = (name: string) => join(options.folder, name);
  writeFiles(options, file);
  const started: Array<Child> = [];
  const launch = (name: string, args: ReadonlyArray<string>) => {
    const log = createWriteStream(file(`${name}.log`));
    const onOutput = (chunk: Buffer) => void log.write(chunk);
    // etcd flushes what it has answered: a kill loses nothing.
    const signals = { stopSignal: 'SIGTERM', killSignal: 'SIGKILL' } as const;
    const child = options.children.start({ command: join(assets, name), args, onOutput, ...signals });
    void child.ended.then(() => log.end());
    started.unshift(child);
    return child;
  };
  // One after another: a stop takes at most 15 s altogether.
  const stop = async () => {
    for (const child of started.splice(0)) await child.stop(options.isDurable === false ? 0 : 2500);
  };
  const [url, etcd] = [`https://127.0.0.1:${options.port}`, `http://127.0.0.1:${options.etcdPort}`];
  // The administrator's kubeconfig, for `kubectl`.
  const kubeconfig = file('admin.kubeconfig');
  try {
    const store = launch('etcd', etcdArgs(options, etcd, file));
    const server = launch('kube-apiserver', apiServerArgs(options, etcd, file));
    await ready(`${url}/readyz`, options.tls.ca, { store, server });
    writeKubeconfig(kubeconfig, { url, ca: options.tls.ca, token: options.token });
    const isManaged = options.controllers?.length !== 0 && existsSync(join(assets, 'kube-controller-manager'));
    if (isManaged) launch('kube-controller-manager', managerArgs(options, kubeconfig, file));
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, etcd, kubeconfig, stop };
}

type File = (name: string) => string;

function writeFiles({ tls, token }: ControlPlaneOptions, file: File): void {
  const write = (name: string, text: string) => writeFileSync(file(name), text, { mode: 0o600 });
  write('ca.crt', tls.ca);
  write('apiserver.crt', tls.cert);
  write('apiserver.key', tls.key);
  write('tokens.csv', `${token},gateway-operator-admin,gateway-operator-admin,"system:masters"\n`);
  if (existsSync(file('sa.key'))) return;
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  write('sa.pub', pair.publicKey);
  write('sa.key', pair.privateKey);
}

function etcdArgs({ isDurable = true }: ControlPlaneOptions, url: string, file: File): ReadonlyArray<string> {
  return [
    `--data-dir=${file('etcd')}`,
    '--log-level=warn',
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    '--listen-peer-urls=http://127.0.0.1:0',
    ...(isDurable ? [] : ['--unsafe-no-fsync']),
  ];
}

function apiServerArgs(options: ControlPlaneOptions, etcd: string, file: File): ReadonlyArray<string> {
  const { port, plugins = [] } = options;
  return [
    `--etcd-servers=${etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    '--endpoint-reconciler-type=none',
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    `--token-auth-file=${file('tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
    ...(plugins.length === 0 ? [] : [`--enable-admission-plugins=${plugins.join(',')}`]),
  ];
}

function managerArgs({ controllers }: ControlPlaneOptions, kubeconfig: string, file: File): ReadonlyArray<string> {
  return [
    `--kubeconfig=${kubeconfig}`,
    '--leader-elect=false',
    '--secure-port=0',
    `--flex-volume-plugin-dir=${file('flexvolume')}`,
    `--service-account-private-key-file=${file('sa.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
    ...(controllers === undefined ? [] : [`--controllers=${controllers.join(',')}`]),
  ];
}

type Programs = Readonly<Record<'store' | 'server', Child>>;

/** Polls /readyz for at most 45 s, while both programs run; the error has the last lines of their logs. */
async function ready(url: string, ca: string, { store, server }: Programs): Promise<void> {
  let isOver = false;
  void Promise.race([store.ended, server.ended]).then(() => {
    isOver = true;
  });
  for (const until = Date.now() + 45_000; !isOver && Date.now() < until; await pause(50)) {
    if (await isReady(url, ca)) return;
  }
  const lines = `${server.lastLines() || 'it did not run'}; etcd: ${store.lastLines()}`;
  throw new Error(`kube-apiserver did not become ready: ${lines}`);
}

/** Another process that has the port may accept the connection and send nothing. */
const MAX_REPLY_TIME = 2_000;

function isReady(url: string, ca: string): Promise<boolean> {
  return new Promise((resolve) =>
    request(url, { ca, signal: AbortSignal.timeout(MAX_REPLY_TIME) }, (reply) =>
      resolve(reply.resume().statusCode === 200),
    )
      .on('error', () => resolve(false))
      .end(),
  );
}

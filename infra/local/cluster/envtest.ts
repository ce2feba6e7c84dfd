// How does a real kube-apiserver with etcd run under the stack (`--cluster envtest`)?
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../options.ts';
import { writeKubeconfig } from './kubeconfig.ts';

export interface ControlPlane {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

export interface ControlPlaneOptions {
  readonly folder: string;
  readonly port: number;
  readonly etcdPort: number;
  readonly token: string;
  /** PEM files' contents for 127.0.0.1, and the CA that signed them. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string };
}

/** The folder with etcd and kube-apiserver, or a UsageError that says how to get one. */
export function envtestAssets(): string {
  const folder = process.env.KUBEBUILDER_ASSETS || undefined;
  const missing =
    folder === undefined ? [] : ['etcd', 'kube-apiserver'].filter((name) => !existsSync(join(folder, name)));
  if (folder !== undefined && missing.length === 0) return folder;
  throw new UsageError(
    folder === undefined
      ? '--cluster envtest: KUBEBUILDER_ASSETS is not set. Set it to a folder with etcd and kube-apiserver (`setup-envtest use -p path` of controller-runtime prints one).'
      : `--cluster envtest: ${folder} (KUBEBUILDER_ASSETS) has no ${missing.join(' and no ')}.`,
  );
}

/** Starts etcd (its data in the folder) and the API server, with the controller manager where the assets have one. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const assets = envtestAssets();
  mkdirSync(options.folder, { recursive: true });
  const file = (name: string) => join(options.folder, name);
  writeFiles(options, file);
  const children: Array<ChildProcess> = [];
  const launch = (name: string, args: ReadonlyArray<string>) => {
    const child = spawn(join(assets, name), args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const log = createWriteStream(file(`${name}.log`));
    child.stdout?.pipe(log);
    child.stderr?.pipe(log);
    children.push(child);
    writeFileSync(file('pids'), children.map(({ pid }) => `${pid}`).join('\n'));
    return child;
  };
  launch('etcd', etcdArgs(options, file));
  const server = launch('kube-apiserver', apiServerArgs(options, file));
  const url = `https://127.0.0.1:${options.port}`;
  await ready(`${url}/readyz`, options.tls.ca, server, file('kube-apiserver.log'));
  writeKubeconfig(file('controllers.kubeconfig'), { url, ca: options.tls.ca, token: options.token });
  if (existsSync(join(assets, 'kube-controller-manager'))) launch('kube-controller-manager', controllerArgs(file));
  return { url, token: options.token, stop: () => end(children.reverse()) };
}

function writeFiles({ tls, token }: ControlPlaneOptions, file: (name: string) => string): void {
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

function etcdArgs(options: ControlPlaneOptions, file: (name: string) => string): ReadonlyArray<string> {
  const url = `http://127.0.0.1:${options.etcdPort}`;
  const addresses = [
    '--listen-client-urls',
    url,
    '--advertise-client-urls',
    url,
    '--listen-peer-urls',
    'http://127.0.0.1:0',
  ];
  return ['--data-dir', file('etcd'), '--log-level', 'warn', ...addresses];
}

function apiServerArgs(options: ControlPlaneOptions, file: (name: string) => string): ReadonlyArray<string> {
  return [
    `--etcd-servers=http://127.0.0.1:${options.etcdPort}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${options.port}`,
    '--endpoint-reconciler-type=none',
    `--tls-cert-file=${file('apiserver.crt')}`,
    `--tls-private-key-file=${file('apiserver.key')}`,
    `--token-auth-file=${file('tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${file('sa.pub')}`,
    `--service-account-signing-key-file=${file('sa.key')}`,
    '--authorization-mode=RBAC',
    '--service-cluster-ip-range=10.96.0.0/16',
  ];
}

function controllerArgs(file: (name: string) => string): ReadonlyArray<string> {
  return [
    `--kubeconfig=${file('controllers.kubeconfig')}`,
    '--leader-elect=false',
    '--secure-port=0',
    `--flex-volume-plugin-dir=${file('flexvolume')}`,
    `--service-account-private-key-file=${file('sa.key')}`,
    `--root-ca-file=${file('ca.crt')}`,
  ];
}

/** Asks /readyz until it says yes, for at most 45 s; an API server that ends says why in its log. */
async function ready(url: string, ca: string, server: ChildProcess, log: string): Promise<void> {
  for (const until = Date.now() + 45_000; Date.now() < until; await pause(50)) {
    if (server.exitCode !== null) break;
    if (
      await new Promise((resolve) =>
        request(url, { ca }, (reply) => resolve(reply.resume().statusCode === 200))
          .on('error', () => resolve(false))
          .end(),
      )
    )
      return;
  }
  throw new Error(
    `kube-apiserver did not become ready: ${readFileSync(log, 'utf8').trim().split('\n').slice(-3).join(' | ')}`,
  );
}

/** Ends what a stack that was killed left running on this folder, so that its ports can be taken again. */
export async function endControlPlane(folder: string): Promise<void> {
  const file = join(folder, 'pids');
  if (!existsSync(file)) return;
  for (const pid of readFileSync(file, 'utf8').split('\n').map(Number)) {
    if (!isOurs(pid)) continue;
    process.kill(pid, 'SIGKILL');
    for (let waited = 0; waited < 5000 && isOurs(pid); waited += 50) await pause(50);
  }
}

function isOurs(pid: number): boolean {
  if (!(pid > 1) || process.platform !== 'linux') return false;
  const proc = `/proc/${pid}/cmdline`;
  return existsSync(proc) && /etcd|kube-apiserver|kube-controller-manager/.test(readFileSync(proc, 'utf8'));
}

/** In order, each with 5 s to go by itself: a stop takes at most 15 s altogether, and etcd loses nothing by a kill. */
async function end(children: ReadonlyArray<ChildProcess>): Promise<void> {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 2500);
    await ended;
    clearTimeout(late);
  }
}

// Where do tests get a real kube-apiserver of their own?
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { writeKubeconfig } from '../infra/local/cluster/kubeconfig.ts';
import { freePort } from '../infra/local/state/ports.ts';

export interface Answer {
  readonly code: number;
  readonly body: unknown;
  /** The texts of its `Warning` headers. */
  readonly warnings: readonly string[];
}

export interface TestControlPlane {
  /** Address of its etcd, where it has one. */
  readonly etcd?: string;
  readonly url: string;
  readonly token: string;
  /** PEM: what clients trust. */
  readonly ca: string;
  /** A file for `kubectl`. */
  readonly kubeconfig: string;
  /** One request as an administrator, as JSON where the headers say nothing else; the body of the answer is parsed JSON. */
  call(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** Why there can be no such API server here; undefined where there can. */
export function whyNoControlPlane(): string | undefined {
  const folder = process.env.KUBEBUILDER_ASSETS;
  if (folder === undefined) return 'KUBEBUILDER_ASSETS is not set';
  const missing = ['etcd', 'kube-apiserver'].filter((name) => !existsSync(join(folder, name)));
  return missing.length === 0 ? undefined : `${folder} (KUBEBUILDER_ASSETS) has no ${missing.join(' and no ')}`;
}

export interface ControlPlaneParts {
  /** Controllers of kube-controller-manager to run, by its names for them. */
  readonly controllers?: readonly string[];
  /** Admission plug-ins that are off by default. */
  readonly plugins?: readonly string[];
}

/** etcd and kube-apiserver from KUBEBUILDER_ASSETS, without controllers unless named; about three seconds, so once per test file. */
export async function startControlPlane({
  controllers = [],
  plugins = [],
}: ControlPlaneParts = {}): Promise<TestControlPlane> {
  const assets = process.env.KUBEBUILDER_ASSETS ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'gateway-operator-control-plane-'));
  const file = (name: string) => join(folder, name);
  const [port, etcdPort] = [await freePort(0, 'any'), await freePort(0, 'any')];
  const url = `https://127.0.0.1:${port}`;
  const token = randomBytes(16).toString('hex');
  writeFileSync(file('tokens.csv'), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
  writeFileSync(file('sa.key'), serviceAccountKey(), { mode: 0o600 });
  const start = (name: string, args: readonly string[]) => spawn(join(assets, name), args, { stdio: 'ignore' });
  const children = [
    start('etcd', [
      ...['--data-dir', file('etcd'), '--unsafe-no-fsync', '--listen-peer-urls', 'http://127.0.0.1:0'],
      ...[
        '--listen-client-urls',
        `http://127.0.0.1:${etcdPort}`,
        '--advertise-client-urls',
        `http://127.0.0.1:${etcdPort}`,
      ],
    ]),
    start('kube-apiserver', [
      ...[
        '--bind-address=127.0.0.1',
        '--advertise-address=127.0.0.1',
        `--secure-port=${port}`,
        '--endpoint-reconciler-type=none',
      ],
      ...[
        `--etcd-servers=http://127.0.0.1:${etcdPort}`,
        `--cert-dir=${file('certs')}`,
        `--token-auth-file=${file('tokens.csv')}`,
      ],
      ...['--service-account-issuer=https://kubernetes.default.svc', `--service-account-key-file=${file('sa.key')}`],
      ...[
        `--service-account-signing-key-file=${file('sa.key')}`,
        '--authorization-mode=RBAC',
        '--service-cluster-ip-range=10.96.0.0/16',
      ],
      ...(plugins.length === 0 ? [] : [`--enable-admission-plugins=${plugins.join(',')}`]),
    ]),
  ];
  const stop = () => end(children, folder);
  try {
    const ca = await certificate(file('certs/apiserver.crt'));
    const call = caller(url, token, ca);
    await ready(call);
    writeKubeconfig(file('kubeconfig'), { url, ca, token });
    if (controllers.length > 0) {
      children.push(
        start('kube-controller-manager', [
          ...[`--kubeconfig=${file('kubeconfig')}`, '--leader-elect=false', '--secure-port=0'],
          ...[`--controllers=${controllers.join(',')}`, `--flex-volume-plugin-dir=${file('flexvolume')}`],
        ]),
      );
    }
    return { url, etcd: `http://127.0.0.1:${etcdPort}`, token, ca, kubeconfig: file('kubeconfig'), call, stop };
  } catch (error) {
    await stop();
    throw new Error('starting a kube-apiserver for tests', { cause: error });
  }
}

function serviceAccountKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
}

/** The API server makes its own certificate when it starts; it stands under the name `localhost` and the address it binds. */
async function certificate(path: string): Promise<string> {
  for (const until = Date.now() + 30_000; Date.now() < until; await pause(50)) {
    if (existsSync(path) && readFileSync(path, 'utf8').includes('END CERTIFICATE')) return readFileSync(path, 'utf8');
  }
  throw new Error(`no certificate at ${path}`);
}

/** Asks as whoever has the token. */
export function caller(url: string, token: string, ca: string): TestControlPlane['call'] {
  const agent = new Agent({ ca, keepAlive: true, maxSockets: 8 });
  return (method, path, body, more) =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json',
        ...more,
      };
      const sent = request(`${url}${path}`, { method, agent, headers }, (reply) => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.on('error', reject);
        reply.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ code: reply.statusCode ?? 0, body: parse(text), warnings: warningsOf(reply.headers.warning) });
        });
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/** `299 - "text", 299 - "text"` */
function warningsOf(header: string | undefined): string[] {
  return [...(header ?? '').matchAll(/299 - ("(?:[^"\\]|\\.)*")/g)].map(([, quoted = '""']) => JSON.parse(quoted));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function ready(call: TestControlPlane['call']): Promise<void> {
  let last: unknown;
  for (const until = Date.now() + 60_000; Date.now() < until; await pause(50)) {
    try {
      const { code } = await call('GET', '/readyz');
      if (code === 200) return;
      last = code;
    } catch (error) {
      last = error;
    }
  }
  throw new Error('kube-apiserver was not ready within 60 s', { cause: last });
}

/** The API server first; both are gone when this returns. */
async function end(children: readonly ChildProcess[], folder: string): Promise<void> {
  for (const child of [...children].reverse()) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}

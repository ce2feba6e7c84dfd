// A real kube-apiserver of one test.
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { type Certificates, openCertificates } from '../../infra/platforms/local/cluster/certificates.ts';
import * as launcher from '../../infra/platforms/local/cluster/envtest.ts';
import { createChildren } from '../../infra/platforms/local/state/children.ts';
import { freePort, onFreePort } from '../../infra/platforms/local/state/ports.ts';
import { temporaryFolder } from './temporary-folder.ts';

export interface Answer {
  readonly code: number;
  readonly body: unknown;
  /** The texts of its `Warning` headers. */
  readonly warnings: readonly string[];
}

export interface TestControlPlane {
  /** The address of its etcd, where it has one. */
  readonly etcd?: string;
  readonly url: string;
  readonly token: string;
  /** The CA that clients trust, in PEM. */
  readonly ca: string;
  /** Of that CA, good for 127.0.0.1. */
  readonly tls: Certificates;
  /** The path of a kubeconfig. */
  readonly kubeconfig: string;
  /** A request as an administrator, JSON unless the headers say otherwise; the body of the answer is parsed JSON. */
  call(method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Stops the server and removes its folder. */
  stop(): Promise<void>;
}

/** Why no such API server can run here; undefined where it can. */
export const whyNoControlPlane = launcher.missingAssets;

export interface ControlPlaneParts {
  /** Names of the kube-controller-manager controllers to run; absent: none. */
  readonly controllers?: readonly string[] | 'all';
  /** Admission plug-ins that are off by default. */
  readonly plugins?: readonly string[];
}

/**
 * Starts etcd and kube-apiserver from KUBEBUILDER_ASSETS, and the named controllers. Takes about three seconds: call it
 * once per test file.
 */
export async function startControlPlane({
  controllers = [],
  plugins = [],
}: ControlPlaneParts = {}): Promise<TestControlPlane> {
  const folder = temporaryFolder();
  const token = randomBytes(16).toString('hex');
  const tls = await openCertificates(join(folder, 'certificates'), new Date());
  const own = {
    children: createChildren(join(folder, 'children')),
    folder: join(folder, 'control-plane'),
    token,
    tls,
    ...(controllers === 'all' ? {} : { controllers }),
    plugins,
    isDurable: false,
  };
  const pick = () => freePort(0, 'any');
  const start = (port: number) =>
    onFreePort(pick, (etcdPort) => launcher.startControlPlane({ ...own, port, etcdPort }));
  const { url, etcd, kubeconfig, stop } = await onFreePort(pick, start);
  return {
    url,
    etcd,
    token,
    ca: tls.ca,
    tls,
    kubeconfig,
    call: caller(url, token, tls.ca),
    stop: async () => {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends requests with the token. */
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

/** The texts of a `Warning` header: `299 - "text", 299 - "text"`. */
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

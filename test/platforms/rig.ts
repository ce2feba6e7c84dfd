// A real node for tests: containerd, kubelet, scheduler and kube-proxy in namespaces of their own, by the test kit that
// GATEWAY_OPERATOR_RIG names.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, type ChildResult, run, startChild } from '../support/child.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { forward } from './forward.ts';

const testKit = process.env.GATEWAY_OPERATOR_RIG;
const unpacked = join(tmpdir(), 'gateway-operator-rig');
/** The node's address, which Pods reach. */
const NODE = '192.0.2.1';

/** Why tests on a real node are skipped here. */
export function whyNoRig(): string | undefined {
  if (testKit === undefined || !existsSync(join(testKit, 'up.sh')))
    return 'GATEWAY_OPERATOR_RIG names no test kit of a node';
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'a node needs Linux, and root';
  return whyNoControlPlane();
}

export interface Rig {
  /** The node's folder, with its programs' files and sockets. */
  readonly state: string;
  /** Runs a script of the test kit on this node. */
  script(name: string, env?: Readonly<Record<string, string>>): Promise<string>;
  /** Runs a command on the node, with `kubectl` set up. */
  run(command: string, args: ReadonlyArray<string>, stdin?: string): Promise<ChildResult>;
  /** Runs commands of a page there, from this folder, and stops at the first that fails. */
  type(text: string, folder: string): Promise<string>;
  /** Sends a request to the API server, for what `kubectl` would be too slow. */
  call(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Runs `kubectl`, which must succeed; returns its output. */
  kubectl(args: string, stdin?: object): Promise<string>;
  importImage(archive: string): Promise<void>;
  /** Lets Pods reach a port of this machine's loopback as a Service of that name and port in each of the namespaces. */
  publish(service: string, port: number, to: number, namespaces: ReadonlyArray<string>): Promise<void>;
  /** Ends TLS at an address of the node, by the files of a certificate, and passes on to another. */
  endTls(from: string, to: string, cert: string, key: string): Promise<void>;
  /** The address, here, of an address on the node. */
  reach(address: string): Promise<string>;
  stop(): Promise<void>;
}

/** Takes about five seconds; the first time ten, to unpack the programs. */
export async function startRig(): Promise<Rig> {
  // A short path: containerd's socket is below it.
  const state = mkdtempSync('/tmp/rig-');
  const script = async (name: string, args: ReadonlyArray<string>, env = {}) => {
    const { code, stdout, stderr } = await run(join(testKit ?? '', name), args, { RIG: unpacked, ...env });
    if (code !== 0) throw new Error(`${name}: ${stderr}`);
    return stdout.trim();
  };
  await script('unpack.sh', [unpacked]);
  await script('up.sh', [state]);
  const inside = join(state, 'in');
  const forwarders: Child[] = [];
  const closing: Array<() => void> = [];
  let sockets = 0;
  const startForwarder = async (...addresses: string[]) => {
    const child = startChild(inside, [process.execPath, join(import.meta.dirname, 'forward.ts'), ...addresses]);
    forwarders.push(child);
    await child.prints(/(forwarding)/);
  };
  const socket = () => join(state, `${++sockets}.sock`);
  const kubectl = async (args: string, stdin?: object) => {
    const input = stdin === undefined ? '' : JSON.stringify(stdin);
    const { code, stdout, stderr } = await run(inside, ['kubectl', ...args.split(' ')], {}, input);
    if (code !== 0) throw new Error(`kubectl ${args}: ${stderr}`);
    return stdout;
  };
  const here = async (to: string) => {
    const server = await forward('127.0.0.1:0', to);
    closing.push(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const reach = async (address: string) => {
    const to = socket();
    await startForwarder(to, address);
    return here(to);
  };
  const proxy = startChild(inside, ['kubectl', 'proxy', '--port=8001']);
  forwarders.push(proxy);
  await proxy.prints(/(Starting to serve)/);
  const api = await reach('127.0.0.1:8001');
  return {
    state,
    script: (name, env) => script(name, [state], env),
    kubectl,
    reach,
    endTls: startForwarder,
    async call(method, path, body) {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const sent = body === undefined ? {} : { headers: { 'content-type': type }, body: JSON.stringify(body) };
      const answer = await fetch(`${api}${path}`, { method, ...sent });
      return { status: answer.status, body: await answer.json() };
    },
    run: (command, args, stdin) => run(inside, [command, ...args], {}, stdin),
    async type(text, folder) {
      const child = startChild(inside, ['bash', '-euo', 'pipefail', '-c', text], { cwd: folder });
      const { code, stdout, stderr } = await child.ended;
      if (code !== 0) throw new Error(`${text}\n${stdout}${stderr}`);
      return stdout;
    },
    importImage: async (archive) => void (await script('image.sh', [state, archive])),
    async publish(service, port, to, namespaces) {
      const from = socket();
      const server = await forward(from, `127.0.0.1:${to}`);
      closing.push(() => server.close());
      await startForwarder(`${NODE}:${to}`, from);
      for (const namespace of namespaces) await kubectl('apply -f -', toNode(service, namespace, port, to));
    },
    async stop() {
      for (const close of closing) close();
      await script('down.sh', [state]);
      await Promise.all(forwarders.map((child) => child.ended));
      rmSync(state, { recursive: true, force: true });
    },
  };
}

/** A Service without Pods: its one endpoint is the node. */
function toNode(name: string, namespace: string, port: number, to: number): object {
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports: [{ port }] } };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
    ports: [{ port: to }],
    endpoints: [{ addresses: [NODE], conditions: { ready: true } }],
  };
  return { apiVersion: 'v1', kind: 'List', items: [service, slice] };
}

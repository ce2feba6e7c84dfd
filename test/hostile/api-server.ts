// An API server whose Secrets and keys are as large as etcd lets tenants make them.
import { writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { KubeObject } from '#core/ports/cluster.ts';

const MIB = 1024 * 1024;
/** Keys of each Secret, `k0` and so on, with a tenth of a megabyte each. */
const ENTRIES = 12;
export const LARGE_KEYS = Object.fromEntries(Array.from({ length: ENTRIES }, (_, index) => [`k${index}`, `k${index}`]));
const PAGE = 500;

interface Objects {
  /** All that there are. */
  readonly instances?: ReadonlyArray<KubeObject>;
  /** One of the keys, of which each list has as many as it asks for. Absent: there are none. */
  readonly key?: KubeObject;
  /** Secrets that are not large, by name. */
  readonly secrets?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface LargeApiServer {
  /** Writes a kubeconfig into the folder; answers its path. */
  writeKubeconfig(folder: string): string;
  stop(): void;
}

export async function startLargeApi({ instances = [], key, secrets = {} }: Objects): Promise<LargeApiServer> {
  const secretOf = (data: object) =>
    JSON.stringify({ metadata: { name: 's', namespace: 'platform', uid: 's', resourceVersion: '1' }, data });
  const texts = new Map(
    Object.entries(secrets).map(([name, data]) => [
      name,
      secretOf(Object.fromEntries(Object.entries(data).map(([entry, text]) => [entry, btoa(text)]))),
    ]),
  );
  const value = 'aaaa'.repeat((1.4 * MIB) / ENTRIES / 4);
  const large = secretOf(Object.fromEntries(Object.keys(LARGE_KEYS).map((entry) => [entry, value])));
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    const name = pathname.split('/').at(-1) ?? '';
    request.resume();
    response.setHeader('content-type', 'application/json');
    const answer = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    if (name === 'subjectaccessreviews') return answer(201, { status: { allowed: true } });
    if (request.method !== 'GET') return answer(200, instances[0] ?? {});
    if (pathname.includes('/secrets/')) return response.end(texts.get(name) ?? large);
    if (name === 'gatewayinstances') return answer(200, { metadata: {}, items: instances });
    if (name === 'virtualkeys' && key !== undefined)
      return sendPage(response, JSON.stringify(key), Number(searchParams.get('limit')));
    if (['virtualkeys', 'users', 'teams', 'configmaps'].includes(name)) return answer(200, { metadata: {}, items: [] });
    return answer(404, { kind: 'Status', reason: 'NotFound' });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    writeKubeconfig: (folder) => {
      const file = join(folder, 'kubeconfig');
      const kubeconfig = {
        ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', users: [{ name: 'u', user: { token: 't' } }] },
        clusters: [{ name: 'c', cluster: { server: address } }],
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      };
      writeFileSync(file, JSON.stringify(kubeconfig));
      return file;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Sends so many items as fast as they are taken. */
function sendPage(response: ServerResponse, item: string, count: number): void {
  response.write(`{"metadata":{"continue":"${count < PAGE ? 'more' : ''}"},"items":[${item}`);
  let sent = 1;
  const more = (): void => {
    while (sent < count && !response.destroyed) {
      sent += 1;
      if (!response.write(`,${item}`)) return void response.once('drain', more);
    }
    response.end(']}');
  };
  more();
}

// A stand-in for an API server, warm and on the loopback: the objects that admission looks up, and also many keys.
import { createServer, type IncomingMessage } from 'node:http';
import { type KubeObject, RESOURCES } from '#core/ports/cluster.ts';
import { gatewayInstances, teams, users, virtualKeys } from '#crds/kinds/kinds.ts';
import { GOOD, objectOf, secretOf } from '../../admission/fixtures.ts';
import { instanceSpec, MODELS } from './reviews.ts';

export interface StandIn {
  readonly url: string;
  /** The requests since the last call, and the bytes of their answers. */
  readonly recorded: () => { readonly asked: readonly string[]; readonly bytes: number };
  readonly stop: () => Promise<void>;
}

/** Starts the stand-in. Names and selectable fields are indexed, so times show only requests and answers. */
export async function startStandIn(keys: number): Promise<StandIn> {
  const byPath = new Map<string, string>();
  const byFields = new Map<string, string[]>();
  const put = (resource: { group: string; version: string; plural: string }, object: KubeObject) =>
    byPath.set(
      `${folderOf(resource)}/namespaces/${object.metadata.namespace}/${resource.plural}/${object.metadata.name}`,
      JSON.stringify(object),
    );
  const secrets = [
    secretOf('database', { host: 'postgres', user: 'gateway', password: 'x', name: 'gateway' }),
    secretOf('store', { host: 'valkey', port: '6379', password: '' }),
    ...MODELS.map((model) => secretOf(`creds-${model}`, { apiKey: 'x' })),
  ];
  for (const { stringData, ...secret } of secrets) {
    const entries = Object.entries(stringData as Record<string, string>);
    const data = Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value).toString('base64')]));
    put(RESOURCES.secrets, { ...secret, data });
  }
  put(gatewayInstances, objectOf('GatewayInstance', instanceSpec()));
  put(users, objectOf('User'));
  put(teams, objectOf('Team'));
  for (let index = 0; index < keys; index += 1) {
    const spec = { ...GOOD.VirtualKey, keyAlias: `key-${index}` };
    const key = objectOf('VirtualKey', spec, { name: `key-${index}`, namespace: 'team-b' });
    put(virtualKeys, key);
    byFields.set(`spec.keyAlias=key-${index},spec.connectionRef.instanceRef.name=main`, [JSON.stringify(key)]);
  }

  let asked: string[] = [];
  let bytes = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://stand-in');
    asked.push(`${request.method} ${decodeURIComponent(url.pathname + url.search)}`);
    const [status, text] = answer(url);
    bytes += text.length;
    drain(request).then(() => response.writeHead(status, { 'content-type': 'application/json' }).end(text));
  });
  const answer = (url: URL): readonly [number, string] => {
    if (url.pathname.endsWith('/subjectaccessreviews')) return [201, '{"status":{"allowed":true}}'];
    const found = byPath.get(url.pathname);
    if (found !== undefined) return [200, found];
    const selector = url.searchParams.get('fieldSelector');
    if (selector === null)
      return [404, '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}'];
    return [200, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[${(byFields.get(selector) ?? []).join()}]}`];
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const recorded = () => {
    const all = { asked, bytes };
    asked = [];
    bytes = 0;
    return all;
  };
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${port}`, recorded, stop };
}

const folderOf = ({ group, version }: { group: string; version: string }) =>
  group === '' ? `/api/${version}` : `/apis/${group}/${version}`;

async function drain(request: IncomingMessage): Promise<void> {
  for await (const _ of request);
}

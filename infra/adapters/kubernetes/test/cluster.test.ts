// Does the client keep its head when the API server is busy, slow, gone, or says something odd?
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ClusterError, hasTooManyKeys, type KubeObject, MAX_KEYS, RESOURCES } from '#core/ports/cluster.ts';
import { inTime } from '../../../../test/support/in-time.ts';
import { createCluster } from '../cluster.ts';
import { createFetchTransport } from '../fetch.ts';

type Reply = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let server: Server;
let address: string;
let replies: Reply[];
let seen: string[];

beforeEach(async () => {
  replies = [];
  seen = [];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      seen.push(`${request.method} ${request.url}`);
      const reply = replies.length > 1 ? replies.shift() : replies[0];
      reply?.(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const cluster = (giveUpAfter = 2000) =>
  createCluster({ request: createFetchTransport({ address, token: ' secret\n', fetch }), giveUpAfter });
const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const status = (code: number, reason: string, more = {}) =>
  json(code, {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: `it is ${reason}`,
    reason,
    code,
    ...more,
  });
const map = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' } });
const get = (name = 'x', from = cluster()) => from.get(RESOURCES.configMaps, 'a', name);

describe('an API server that is busy', () => {
  test('is asked again when it said, and not before', async () => {
    replies = [json(429, {}, { 'retry-after': '1' }), json(200, map('x'))];
    const started = performance.now();
    expect(await get()).toEqual(map('x'));
    expect(performance.now() - started).toBeGreaterThanOrEqual(990);
    expect(seen).toHaveLength(2);
  });

  test('is given up immediately where it names a time beyond our deadline', async () => {
    replies = [json(429, {}, { 'retry-after': '30' })];
    await expect(inTime(get())).rejects.toThrow(
      'GET /api/v1/namespaces/a/configmaps/x: the API server is too busy (429)',
    );
  });

  test('may be busy for a write too: it has done nothing yet', async () => {
    replies = [json(503, {}, { 'retry-after': '0' }), json(201, map('x'))];
    expect(await cluster().create(RESOURCES.configMaps, map('x'))).toMatchObject({ ok: true });
  });
});

describe('an API server that is not there', () => {
  test('is given up in time', async () => {
    replies = [() => {}];
    await expect(get('x', cluster(150))).rejects.toThrow(/no answer within 0.15 s/);
  });

  test('is asked once more for a GET when the connection broke, never for a write', async () => {
    replies = [(request) => request.socket.destroy(), json(200, map('x'))];
    expect(await get()).toEqual(map('x'));
    replies = [(request) => request.socket.destroy(), json(200, map('x'))];
    await expect(cluster().create(RESOURCES.configMaps, map('x'))).rejects.toThrow(ClusterError);
  });

  test('says how it was not there', async () => {
    address = 'http://127.0.0.1:1';
    await expect(get()).rejects.toThrow(/^GET \/api\/v1\/namespaces\/a\/configmaps\/x: .+/);
  });
});

describe('a 404', () => {
  test('means absent only when the API server says so: a kind that is not served (yet) throws', async () => {
    replies = [status(404, 'NotFound')];
    expect(await get()).toBeUndefined();
    replies = [(_request, response) => response.writeHead(404).end('404 page not found\n')];
    await expect(get()).rejects.toThrow('reading configmaps a/x: 404 404 page not found');
    await expect(cluster().delete(RESOURCES.configMaps, 'a', 'x', 'u')).rejects.toThrow(ClusterError);
  });
});

describe('a name that is none', () => {
  test.each(['', '.', '..', 'a/b', '../secrets', '%2e%2e'])('%j never reaches the API server', async (name) => {
    replies = [json(200, map('x'))];
    expect(await get(name)).toBeUndefined();
    expect(await cluster().get(RESOURCES.configMaps, name, 'x')).toBeUndefined();
    expect(await cluster().list(RESOURCES.configMaps, { namespace: name })).toEqual([]);
    expect(await cluster().delete(RESOURCES.configMaps, 'a', name, 'u')).toMatchObject({ refusal: 'invalid' });
    expect(await cluster().patch(RESOURCES.configMaps, 'a', name, {})).toMatchObject({ refusal: 'invalid' });
    expect(await cluster().apply(RESOURCES.configMaps, map(name))).toMatchObject({ refusal: 'invalid' });
    expect(seen).toEqual([]);
  });
});

describe('a refusal', () => {
  const causes = (...list: object[]) => ({ details: { causes: list } });
  test.each([
    [status(404, 'NotFound'), 'gone'],
    [status(409, 'AlreadyExists'), 'exists'],
    [status(409, 'Conflict'), 'conflict'],
    [status(403, 'Forbidden'), 'forbidden'],
    [status(403, 'Forbidden', causes({ reason: 'NamespaceTerminating', field: 'metadata.namespace' })), 'terminating'],
    [status(401, 'Unauthorized'), 'forbidden'],
    [status(422, 'Invalid', causes({ field: 'metadata.uid' }, { field: 'metadata.uid' })), 'conflict'],
    [status(422, 'Invalid', causes({ field: 'spec.maxBudget' })), 'invalid'],
    [status(400, 'BadRequest'), 'invalid'],
  ])('%# is %s', async (reply, refusal) => {
    replies = [reply];
    expect(await cluster().create(RESOURCES.configMaps, map('x'))).toMatchObject({ ok: false, refusal });
  });

  test('that nobody decides by throws, with the words of the API server', async () => {
    replies = [status(500, 'InternalError')];
    await expect(cluster().create(RESOURCES.configMaps, map('x'))).rejects.toThrow(
      'creating configmaps x: 500 it is InternalError',
    );
  });
});

describe('a list', () => {
  const page = (names: string[], next?: string) =>
    json(200, { metadata: { continue: next }, items: names.map((name) => ({ metadata: { name } })) });
  const names = async (selection = {}) =>
    (await cluster().list(RESOURCES.configMaps, selection)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);

  test('is read page by page, 500 at a time after the first', async () => {
    replies = [page(['a', 'b'], 't&=/'), page(['c'])];
    expect(await names({ namespace: 'n' })).toEqual(['ConfigMap a', 'ConfigMap b', 'ConfigMap c']);
    expect(seen).toEqual([
      'GET /api/v1/namespaces/n/configmaps?limit=50',
      'GET /api/v1/namespaces/n/configmaps?limit=500&continue=t%26%3D%2F',
    ]);
  });

  test('with a limit is one page', async () => {
    replies = [page(['a'], 'more')];
    expect(await names({ limit: 1, fieldSelector: 'spec.keyAlias=a\\,b&c', labelSelector: 'x in (y)' })).toEqual([
      'ConfigMap a',
    ]);
    expect(seen).toEqual([
      'GET /api/v1/configmaps?limit=1&fieldSelector=spec.keyAlias%3Da%5C%2Cb%26c&labelSelector=x+in+%28y%29',
    ]);
  });

  test('of objects that are large is read in pages that fit in memory, each object once', async () => {
    const objects = Array.from({ length: 660 }, (_, index) => ({
      metadata: { name: `${index}` },
      data: { fill: 'x'.repeat(index < 600 ? 10 : 300_000) },
    }));
    replies = [
      (request, response) => {
        const query = new URL(request.url ?? '', address).searchParams;
        const [from, limit] = [Number(query.get('continue')), Number(query.get('limit'))];
        const next = from + limit < objects.length ? `${from + limit}` : '';
        json(200, { metadata: { continue: next }, items: objects.slice(from, from + limit) })(request, response, '');
      },
    ];
    const pages: Array<ReadonlyArray<KubeObject>> = [];
    await cluster(10_000).listPages(RESOURCES.configMaps, {}, (page) => void pages.push(page));
    expect(pages.flat().map(({ metadata }) => metadata.name)).toEqual(objects.map(({ metadata }) => metadata.name));
    expect(Math.max(...pages.map((page) => JSON.stringify(page).length))).toBeLessThan(5_000_000);
    expect(seen.length).toBeLessThan(40);
  });

  test('of objects that the API server takes too long to send is read in smaller pages, each object once', async () => {
    const objects = Array.from({ length: 1200 }, (_, index) => ({ metadata: { name: `${index}` } }));
    replies = [
      (request, response) => {
        const query = new URL(request.url ?? '', address).searchParams;
        const [from, limit] = [Number(query.get('continue')), Number(query.get('limit'))];
        // Some of them are large where they are stored.
        if (from + limit > 600 && from < 700 && limit > 10) return;
        const next = from + limit < objects.length ? `${from + limit}` : '';
        json(200, { metadata: { continue: next }, items: objects.slice(from, from + limit) })(request, response, '');
      },
    ];
    const found: string[] = [];
    const take = (some: ReadonlyArray<KubeObject>) => void found.push(...some.map(({ metadata }) => metadata.name));
    await cluster(500).listPages(RESOURCES.configMaps, {}, take);
    expect(found).toEqual(objects.map(({ metadata }) => metadata.name));
    expect(seen.length).toBeLessThan(80);
  });

  test('of which one object takes too long is an error', async () => {
    replies = [() => undefined];
    await expect(cluster(10).list(RESOURCES.configMaps)).rejects.toThrow('no answer within');
    expect(seen.length).toBeLessThan(5);
  });

  test('of which one object is larger than a page may be is an error that says so', async () => {
    replies = [json(200, { items: [{ metadata: { name: 'x'.repeat(5_000_000) } }] })];
    await expect(cluster().list(RESOURCES.configMaps)).rejects.toThrow(
      'GET /api/v1/configmaps: the response is larger than 4194304 bytes: shorten the object, or delete it',
    );
  });

  test('of one page says whether there are more', async () => {
    replies = [page(['a'], 'more'), page(['a'])];
    const more: boolean[] = [];
    for (let list = 0; list < 2; list += 1)
      await cluster().listPages(RESOURCES.configMaps, { limit: 1 }, (_, hasMore) => more.push(hasMore));
    expect(more).toEqual([true, false]);
  });

  test('whose token has expired is begun anew', async () => {
    replies = [page(['a'], 't'), status(410, 'Expired'), page(['a', 'b'])];
    expect(await names()).toEqual(['ConfigMap a', 'ConfigMap b']);
  });
});

describe('reads', () => {
  const of = (from: ReturnType<typeof cluster>, namespace: string) => from.get(RESOURCES.configMaps, namespace, 'x');
  const reader = (maxReads?: number) =>
    createCluster({
      request: createFetchTransport({ address, token: 't', fetch }),
      ...(maxReads === undefined ? {} : { maxReads }),
    });
  /** Reads that the API server answers when the test says so. */
  const held = () => {
    const waiting: Array<() => void> = [];
    replies = [
      (_request, response) => void waiting.push(() => response.end(JSON.stringify({ ...map('x'), items: [] }))),
    ];
    return waiting;
  };

  test.each([
    [3, 1, 2],
    [3, 5, 3],
    [16, 1, 4],
    [16, 5, 16],
  ])('of %i at a time: %i namespaces have %i', async (maxReads, namespaces, expected) => {
    const waiting = held();
    const one = reader(maxReads);
    const reads = Promise.all(Array.from({ length: 40 }, (_, index) => of(one, `n${index % namespaces}`)));
    await expect.poll(() => waiting.length).toBe(expected);
    for (let answered = 0; answered < 40; answered += 1) {
      await expect.poll(() => waiting.length).toBeGreaterThan(answered);
      expect(waiting.length - answered).toBeLessThanOrEqual(expected);
      waiting[answered]?.();
    }
    await reads;
  });

  test('of a namespace leave slots for those of others, of Namespaces and of the whole cluster, however many wait', async () => {
    const waiting = held();
    const one = reader();
    const greedy = Array.from({ length: 200 }, () => of(one, 'greedy'));
    await expect.poll(() => waiting.length).toBe(4);
    const unanswered = replies;
    replies = [json(200, { ...map('x'), items: [] })];
    expect(await inTime(of(one, 'other'))).toMatchObject(map('x'));
    expect(await inTime(one.get(RESOURCES.namespaces, undefined, 'other'))).toMatchObject(map('x'));
    expect(await inTime(one.list(RESOURCES.configMaps, { namespace: 'other' }))).toEqual([]);
    expect(await inTime(one.list(RESOURCES.configMaps))).toEqual([]);
    replies = unanswered;
    expect(waiting).toHaveLength(4);
    replies = [json(200, map('x'))];
    for (const answer of waiting) answer();
    await Promise.all(greedy);
  });

  test('of one namespace that count for others do not wait for each other', async () => {
    const waiting = held();
    const one = reader();
    const readFor = (tenant: string) => [
      one.get(RESOURCES.configMaps, 'shared', 'x', { readFor: tenant }),
      one.list(RESOURCES.configMaps, { namespace: 'shared', readFor: tenant }),
    ];
    const greedy = Array.from({ length: 100 }, () => readFor('greedy')).flat();
    await expect.poll(() => waiting.length).toBe(4);
    replies = [json(200, { ...map('x'), items: [] })];
    expect(await inTime(Promise.all([...readFor('other'), of(one, 'shared')]))).toMatchObject([map('x'), [], map('x')]);
    expect(seen.at(-1)).not.toContain('readFor');
    expect(waiting).toHaveLength(4);
    replies = [json(200, { ...map('x'), items: [] })];
    for (const answer of waiting) answer();
    await Promise.all(greedy);
  });

  test('of many namespaces that take all slots let the first read of another pass when one of them ends', async () => {
    const waiting = held();
    const one = reader();
    const greedy = Array.from({ length: 400 }, (_, index) => of(one, `greedy-${index % 4}`));
    await expect.poll(() => waiting.length).toBe(16);
    const other = of(one, 'other');
    seen.length = 0;
    waiting.shift()?.();
    await expect.poll(() => waiting.length).toBe(16);
    expect(seen).toEqual(['GET /api/v1/namespaces/other/configmaps/x']);
    replies = [json(200, map('x'))];
    for (const answer of waiting) answer();
    await Promise.all([other, ...greedy]);
  });
});

describe('writes', () => {
  test('of a namespace that take long leave room for those of others', async () => {
    const one = cluster();
    const waiting: Array<() => void> = [];
    replies = [(_request, response) => void waiting.push(() => response.end(JSON.stringify(map('x'))))];
    const inNamespace = (namespace: string) => ({ ...map('x'), metadata: { name: 'x', namespace } });
    const greedy = Array.from({ length: 20 }, () => one.create(RESOURCES.configMaps, inNamespace('greedy')));
    await expect.poll(() => waiting.length).toBe(8);
    replies = [json(201, map('x'))];
    expect(await inTime(one.create(RESOURCES.configMaps, inNamespace('other')))).toMatchObject({ ok: true });
    expect(await inTime(one.patch(RESOURCES.namespaces, undefined, 'x', {}))).toMatchObject({ ok: true });
    expect(waiting).toHaveLength(8);
    for (const answer of waiting) answer();
    await Promise.all(greedy);
  });
});

describe('a Secret or ConfigMap with very many keys', () => {
  /** As the API server stores it: with the keys in the fields of its manager. */
  const wide = (kind: string, keys: number) => {
    const names = Array.from({ length: keys }, (_, index) => `k${index}`);
    const fields = { 'f:data': Object.fromEntries(names.map((name) => [`f:${name}`, {}])) };
    return {
      ...{ apiVersion: 'v1', kind },
      metadata: { name: 'x', namespace: 'a', managedFields: [{ fieldsV1: fields }] },
      data: Object.fromEntries(names.map((name) => [name, ''])),
    };
  };
  const nameOnly = (kind: string, name: string) => ({
    ...{ apiVersion: 'v1', kind, hasTooManyKeys: true },
    metadata: { name, namespace: 'a' },
  });
  const { secrets, configMaps } = RESOURCES;

  test('is not parsed: only its name is returned', async () => {
    replies = [json(200, wide('Secret', 20_000))];
    const found = await cluster().get(secrets, 'a', 'x');
    expect(found).toEqual(nameOnly('Secret', 'x'));
    expect(found && hasTooManyKeys(found)).toBe(true);
    expect(await cluster().get(secrets, 'a', 'x', { metadataOnly: true })).toEqual(nameOnly('Secret', 'x'));
    replies = [json(200, { items: [wide('ConfigMap', 20_000)], metadata: {} })];
    expect(await cluster().list(configMaps, { namespace: 'a', limit: 1 })).toEqual([nameOnly('ConfigMap', '')]);
  });

  test('is parsed up to the limit, and in lists of several', async () => {
    replies = [json(200, wide('Secret', MAX_KEYS))];
    expect(await cluster().get(secrets, 'a', 'x')).toEqual(wide('Secret', MAX_KEYS));
    replies = [json(200, { items: [wide('ConfigMap', 20_000)], metadata: {} })];
    expect(await cluster().list(configMaps, { namespace: 'a' })).toEqual([wide('ConfigMap', 20_000)]);
  });
});

describe('an answer that is none', () => {
  const user = { username: 'a', groups: [] };
  const ask = () =>
    [
      () => cluster().list(RESOURCES.configMaps),
      () => cluster().serves(RESOURCES.configMaps),
      () => cluster().may(user, 'get', RESOURCES.secrets, 'a', 'x'),
    ] as const;

  test.each([
    '',
    '<html>',
    'null',
    '[]',
    '1',
    '"x"',
    '{}',
    '{"items":1}',
    '{"items":[1]}',
    '{"status":{"allowed":"true"}}',
  ])('as what a proxy in between says (%s) is an error, never a list, an offer or a right', async (text) => {
    replies = [(_request, response) => response.writeHead(200).end(text)];
    for (const one of ask()) await expect(one()).rejects.toThrow();
  });

  test('is not a list of nothing, however that is written', async () => {
    for (const text of ['{"items":null}', '{"metadata":{},"items":[]}', '{"metadata":{"continue":""},"items":[]}']) {
      replies = [(_request, response) => response.writeHead(200).end(text)];
      expect(await cluster().list(RESOURCES.configMaps)).toEqual([]);
    }
  });

  test('is not a refusal: access is allowed only where the answer says so', async () => {
    replies = [json(201, { status: { allowed: false, denied: true } })];
    expect(await cluster().may(user, 'get', RESOURCES.secrets, 'a', 'x')).toBe(false);
    replies = [json(201, { status: { allowed: true } })];
    expect(await cluster().may(user, 'get', RESOURCES.secrets, 'a', 'x')).toBe(true);
  });
});

test('whether a user may read all objects of a namespace is asked without a name', async () => {
  const bodies: string[] = [];
  replies = [
    (_request, response, body) => {
      bodies.push(body);
      response.writeHead(201).end(JSON.stringify({ status: { allowed: true } }));
    },
  ];
  for (const name of ['x', undefined]) await cluster().may({ username: 'u' }, 'get', RESOURCES.secrets, 'a', name);
  const access = { namespace: 'a', verb: 'get', group: '', version: 'v1', resource: 'secrets' };
  const asked = bodies.map((body) => JSON.parse(body).spec.resourceAttributes);
  expect(asked).toEqual([{ ...access, name: 'x' }, access]);
});

test('every write says whose it is, and an apply takes fields over', async () => {
  const contentTypes: unknown[] = [];
  replies = [
    (request, response) => {
      contentTypes.push(request.headers['content-type'], request.headers.authorization);
      response.writeHead(200).end(JSON.stringify(map('x')));
    },
  ];
  const subject = cluster();
  await subject.create(RESOURCES.configMaps, map('x'));
  await subject.patch(RESOURCES.configMaps, 'a', 'x', {}, 'status');
  await subject.apply(RESOURCES.configMaps, map('x'));
  expect(seen).toEqual([
    'POST /api/v1/namespaces/a/configmaps?fieldManager=gateway-operator',
    'PATCH /api/v1/namespaces/a/configmaps/x/status?fieldManager=gateway-operator',
    'PATCH /api/v1/namespaces/a/configmaps/x?fieldManager=gateway-operator&force=true',
  ]);
  expect(contentTypes).toEqual([
    'application/json',
    'Bearer secret',
    'application/merge-patch+json',
    'Bearer secret',
    'application/apply-patch+yaml',
    'Bearer secret',
  ]);
});

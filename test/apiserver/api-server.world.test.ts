// What the embedded API server keeps: writes of many writers, and over a kill.
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { random } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Client, createClient } from './client.ts';
import { type EmbeddedServer, startEmbedded } from './servers.ts';
import { group, widget, widgetDefinition } from './widgets.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const named = (name: string, data: object = {}) => ({ metadata: { name }, data });

const newFile = () => join(temporaryFolder(), 'objects.db');

const clientOf = ({ server, tls, token }: EmbeddedServer): Client =>
  createClient({ url: server.url, ca: tls.ca, token });

/** A server on a new file, its client, and the way to start it again on the same file. */
async function open(options: { historyLength?: number } = {}) {
  const file = newFile();
  let server = await startEmbedded({ file, ...options });
  return {
    file,
    url: () => server.server.url,
    ca: server.tls.ca,
    client: () => clientOf(server),
    async restart() {
      await server.stop();
      server = await startEmbedded({ file, ...options });
    },
    stop: () => server.stop(),
  };
}

test('objects, their revisions and the kinds of CRDs survive a restart', async () => {
  const server = await open();
  const before = server.client();
  await before.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
  const made = await before.call('POST', `/apis/${group}/v1alpha1/namespaces/default/widgets`, widget('kept'));
  expect(made).toMatchObject({ code: 201, body: { spec: { color: 'red', size: 3 } } });
  await server.restart();
  const after = server.client();
  expect(await after.call('GET', `/apis/${group}/v1alpha1/namespaces/default/widgets/kept`)).toEqual({
    code: 200,
    body: made.body,
  });
  const next = await after.call('POST', configMaps, named('next'));
  expect(Number(next.body.metadata.resourceVersion)).toBeGreaterThan(Number(made.body.metadata.resourceVersion));
  await server.stop();
});

test('a watch resumes over a restart, with everything that happened in between', async () => {
  const server = await open();
  const before = server.client();
  const first = await before.call('POST', configMaps, named('one'));
  const cut = before.watch(`${configMaps}?watch=true&resourceVersion=${first.body.metadata.resourceVersion}`);
  await before.call('POST', configMaps, named('two'));
  await expect.poll(() => cut.events.length).toBe(1);
  await before.call('DELETE', `${configMaps}/one`);
  await expect.poll(() => cut.events.length).toBe(2);
  const last = cut.events[0]?.object.metadata.resourceVersion;
  await server.restart();
  await cut.ended;
  const resumed = server.client().watch(`${configMaps}?watch=true&resourceVersion=${last}`);
  await server.client().call('PUT', `${configMaps}/two`, named('two', { a: 'b' }));
  await expect
    .poll(() => resumed.events.map(({ type, object }) => [type, object.metadata.name]))
    .toEqual([
      ['DELETED', 'one'],
      ['MODIFIED', 'two'],
    ]);
  resumed.close();
  await server.stop();
});

test('a watch from too long ago gets 410, and lists again; the log keeps no more than that', async () => {
  const server = await open({ historyLength: 20 });
  const client = server.client();
  const old = (await client.call('POST', configMaps, named('busy'))).body.metadata.resourceVersion;
  for (let i = 0; i < 60; i++) await client.call('PUT', `${configMaps}/busy`, named('busy', { i: String(i) }));
  const watch = client.watch(`${configMaps}?watch=true&resourceVersion=${old}`);
  await watch.ended;
  expect(watch.events).toEqual([
    { type: 'ERROR', object: expect.objectContaining({ kind: 'Status', code: 410, reason: 'Expired' }) },
  ]);
  expect(await client.call('GET', `${configMaps}?resourceVersion=${old}&resourceVersionMatch=Exact`)).toMatchObject({
    code: 410,
    body: { reason: 'Expired' },
  });
  await server.stop();
  const file = new DatabaseSync(server.file);
  expect(file.prepare('select count(*) as lines from log').get()?.lines).toBeLessThan(30);
  file.close();
});

test('pages show every object that stays, whatever is written between them, and name one resourceVersion', async () => {
  const server = await open();
  const client = server.client();
  for (const name of ['a', 'c', 'e']) await client.call('POST', configMaps, named(name));
  const first = await client.call('GET', `${configMaps}?limit=2`);
  await client.call('DELETE', `${configMaps}/a`);
  await client.call('POST', configMaps, named('d'));
  const token = encodeURIComponent(String(first.body.metadata.continue));
  const second = await client.call('GET', `${configMaps}?limit=2&continue=${token}`);
  const names = [first, second].flatMap(({ body }) => body.items as Array<{ metadata: { name: string } }>);
  expect(names.map(({ metadata }) => metadata.name)).toEqual(['a', 'c', 'd', 'e']);
  expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
  await server.stop();
});

test('kill -9 loses no confirmed write', async () => {
  const file = newFile();
  const child = startChild('node', ['test/apiserver/serve.ts', file]);
  const client = createClient(JSON.parse(await child.prints(/^(\{.*\})$/m)));
  const confirmed: string[] = [];
  const writing = Array.from({ length: 8 }, async (_, writer) => {
    for (let i = 0; child.isRunning(); i++) {
      const answer = await client.call('POST', configMaps, named(`w-${writer}-${i}`)).catch(() => undefined);
      if (answer?.code === 201) confirmed.push(`w-${writer}-${i}`);
    }
  });
  await eventually(
    () => confirmed.length,
    (count) => count > 100,
  );
  await child.end('SIGKILL');
  await Promise.all(writing);
  const server = await startEmbedded({ file });
  const { body } = await clientOf(server).call('GET', configMaps);
  const names = (body.items as Array<{ metadata: { name: string } }>).map(({ metadata }) => metadata.name);
  expect(names).toEqual(expect.arrayContaining(confirmed));
  await server.stop();
});

test('a second server on the same file is refused with one sentence, and the first continues', async () => {
  const server = await open();
  await expect(startEmbedded({ file: server.file })).rejects.toThrow(
    `another API server runs on ${server.file}; stop it first`,
  );
  expect(await server.client().call('POST', configMaps, named('still'))).toMatchObject({ code: 201 });
  await server.stop();
});

test('of many writers that saw the same version exactly one wins', async () => {
  const server = await open();
  const client = server.client();
  const { body } = await client.call('POST', configMaps, named('contested'));
  const codes = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      client.call('PUT', `${configMaps}/contested`, { ...body, data: { winner: String(i) } }).then(({ code }) => code),
    ),
  );
  expect(codes.filter((code) => code === 200)).toHaveLength(1);
  expect(codes.filter((code) => code === 409)).toHaveLength(19);
  await server.stop();
});

test('patches without a version never lose each other', async () => {
  const server = await open();
  const client = server.client();
  await client.call('POST', configMaps, named('shared'));
  const codes = await Promise.all(
    Array.from({ length: 5 }, (_, i) =>
      client
        .call('PATCH', `${configMaps}/shared`, { data: { [`k${i}`]: 'x' } }, 'application/merge-patch+json')
        .then(({ code }) => code),
    ),
  );
  expect(codes).toEqual([200, 200, 200, 200, 200]);
  const { body } = await client.call('GET', `${configMaps}/shared`);
  expect(Object.keys(body.data as object).sort()).toEqual(['k0', 'k1', 'k2', 'k3', 'k4']);
  await server.stop();
});

test('who follows a watch knows what a list would show, whatever many writers do at the same time', async () => {
  const server = await open();
  const client = server.client();
  const first = await client.call('GET', configMaps);
  const watch = client.watch(`${configMaps}?watch=true&resourceVersion=${first.body.metadata.resourceVersion}`);
  const next = random(7);
  const write = async () => {
    const path = `${configMaps}/r-${Math.floor(next() * 12)}`;
    const what = next();
    if (what < 0.4) return client.call('POST', configMaps, named(path.slice(configMaps.length + 1)));
    const patch = { data: { n: String(next()) }, metadata: { labels: { l: String(Math.floor(next() * 3)) } } };
    if (what < 0.8) return client.call('PATCH', path, patch, 'application/merge-patch+json');
    return client.call('DELETE', path);
  };
  for (let round = 0; round < 60; round++) await Promise.all(Array.from({ length: 10 }, write));
  const { body } = await client.call('GET', configMaps);
  const versions = (objects: Iterable<{ metadata: object }>) =>
    [...objects]
      .map(({ metadata }) => metadata as { name: string; resourceVersion: string })
      .map(({ name, resourceVersion }) => `${name}@${resourceVersion}`)
      .sort();
  const known = () => {
    const objects = new Map<unknown, { metadata: object }>();
    for (const { type, object } of watch.events) {
      if (type === 'DELETED') objects.delete(object.metadata.name);
      else objects.set(object.metadata.name, object);
    }
    return versions(objects.values());
  };
  await expect.poll(known).toEqual(versions(body.items as Array<{ metadata: object }>));
  const order = watch.events.map(({ object }) => Number(object.metadata.resourceVersion));
  expect(order).toEqual(order.toSorted((left, right) => left - right));
  watch.close();
  await server.stop();
});

test('no token, a wrong token and a wrong port get one clear answer', async () => {
  const server = await open();
  const stranger = createClient({ url: server.url(), ca: server.ca, token: 'wrong' });
  expect(await stranger.call('GET', '/api/v1/namespaces')).toMatchObject({
    code: 401,
    body: { kind: 'Status', reason: 'Unauthorized' },
  });
  const port = Number(new URL(server.url()).port);
  await expect(startEmbedded({ port })).rejects.toThrow(`port ${port} is taken`);
  await server.stop();
});

test('an object that is nested too deeply is refused, and the server continues', async () => {
  const server = await open();
  const client = server.client();
  const deep = `{"metadata":{"name":"deep"},"x":${'['.repeat(9000)}${']'.repeat(9000)}}`;
  expect(await client.call('POST', configMaps, deep)).toMatchObject({
    code: 400,
    body: { reason: 'BadRequest', message: expect.stringContaining('nested too deeply') },
  });
  expect(await client.call('POST', configMaps, named('plain'))).toMatchObject({ code: 201 });
  await server.stop();
});

test('server-side apply owns what was applied, and no more', async () => {
  const server = await open();
  const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owned' }, data: { a: 'b' } };
  const path = `${configMaps}/owned?fieldManager=someone`;
  const { body } = await server.client().call('PATCH', path, applied, 'application/apply-patch+yaml');
  const [entry] = body.metadata.managedFields as ReadonlyArray<{ readonly fieldsV1: object }>;
  expect(entry?.fieldsV1).toEqual({ 'f:data': { 'f:a': {} } });
  await server.stop();
});

test('ten thousand objects are written, listed and selected, and there after a restart', async () => {
  const server = await open();
  const client = server.client();
  await client.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
  const widgets = `/apis/${group}/v1alpha1/namespaces/default/widgets`;
  for (let batch = 0; batch < 100; batch++) {
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        client.call('POST', widgets, widget(`w-${batch}-${i}`, { color: i === 7 ? 'green' : 'red' })),
      ),
    );
    expect(answers.every(({ code }) => code === 201)).toBe(true);
  }
  expect((await client.call('GET', widgets)).body.items).toHaveLength(10_000);
  expect((await client.call('GET', `${widgets}?fieldSelector=spec.color=green`)).body.items).toHaveLength(100);
  await server.restart();
  expect((await server.client().call('GET', widgets)).body.items).toHaveLength(10_000);
  await server.stop();
}, 240_000); // about ten seconds on a quiet machine

// Does the embedded cluster keep what it was given, whoever is killed, and does it stay quick?
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Client, createClient } from '../../test/apiserver/kubectl-cases/client.ts';
import { eventually } from '../../test/apiserver/kubectl-cases/eventually.ts';
import { type EmbeddedServer, startEmbedded } from '../../test/apiserver/kubectl-cases/servers.ts';
import { group, widget, widgetDefinition } from '../../test/apiserver/kubectl-cases/widgets.ts';
import { startPostgres, type TestPostgres } from '../../test/postgres.ts';
import { random } from '../../test/random.ts';
import { startStopwatch } from '../../test/stopwatch.ts';

const configMaps = '/api/v1/namespaces/default/configmaps';
const named = (name: string, data: object = {}) => ({ metadata: { name }, data });

describe('the embedded cluster', () => {
  let postgres: TestPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());

  /** A cluster on a new database, its client, and the way to start it again on the same database and port. */
  async function open(options: { historyLength?: number } = {}) {
    const database = await postgres.createDatabase();
    let server: EmbeddedServer = await startEmbedded({ database, ...options });
    const client = (): Client => createClient({ url: server.cluster.url, ca: server.tls.ca, token: server.token });
    return {
      database,
      server: () => server,
      client,
      async restart() {
        await server.stop();
        server = await startEmbedded({ database, ...options });
      },
      stop: () => server.stop(),
    };
  }

  test('objects, their revisions and the kinds of CRDs survive a restart', async () => {
    const cluster = await open();
    const before = cluster.client();
    await before.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
    const made = await before.call('POST', `/apis/${group}/v1alpha1/namespaces/default/widgets`, widget('kept'));
    expect(made).toMatchObject({ code: 201, body: { spec: { color: 'red', size: 3 } } });
    await cluster.restart();
    const after = cluster.client();
    expect(await after.call('GET', `/apis/${group}/v1alpha1/namespaces/default/widgets/kept`)).toEqual({
      code: 200,
      body: made.body,
    });
    const next = await after.call('POST', configMaps, named('next'));
    expect(Number(next.body.metadata.resourceVersion)).toBeGreaterThan(Number(made.body.metadata.resourceVersion));
    await cluster.stop();
  });

  test('a watch resumes over a restart, with everything that happened in between', async () => {
    const cluster = await open();
    const before = cluster.client();
    const first = await before.call('POST', configMaps, named('one'));
    const cut = before.watch(`${configMaps}?watch=true&resourceVersion=${first.body.metadata.resourceVersion}`);
    await before.call('POST', configMaps, named('two'));
    await eventually(() => expect(cut.events).toHaveLength(1));
    await before.call('DELETE', `${configMaps}/one`);
    await eventually(() => expect(cut.events).toHaveLength(2));
    const last = cut.events[0]?.object.metadata.resourceVersion;
    await cluster.restart();
    await cut.ended;
    const resumed = cluster.client().watch(`${configMaps}?watch=true&resourceVersion=${last}`);
    await cluster.client().call('PUT', `${configMaps}/two`, named('two', { a: 'b' }));
    await eventually(() =>
      expect(resumed.events.map(({ type, object }) => [type, object.metadata.name])).toEqual([
        ['DELETED', 'one'],
        ['MODIFIED', 'two'],
      ]),
    );
    resumed.close();
    await cluster.stop();
  });

  test('a watch or a page from too long ago is told 410, and to list anew', async () => {
    const cluster = await open({ historyLength: 20 });
    const client = cluster.client();
    const first = await client.call('GET', `${configMaps}?limit=1`);
    const old = (await client.call('POST', configMaps, named('busy'))).body.metadata.resourceVersion;
    await client.call('POST', configMaps, named('busy-2'));
    const page = await client.call('GET', `${configMaps}?limit=1`);
    for (let i = 0; i < 60; i++) await client.call('PUT', `${configMaps}/busy`, named('busy', { i: String(i) }));
    const watch = client.watch(`${configMaps}?watch=true&resourceVersion=${old}`);
    await watch.ended;
    expect(watch.events).toEqual([
      { type: 'ERROR', object: expect.objectContaining({ kind: 'Status', code: 410, reason: 'Expired' }) },
    ]);
    const token = encodeURIComponent(String(page.body.metadata.continue));
    expect(await client.call('GET', `${configMaps}?limit=1&continue=${token}`)).toMatchObject({
      code: 410,
      body: { reason: 'Expired' },
    });
    expect(first.code).toBe(200);
    const [{ count } = { count: '' }] = await postgres.query<{ count: string }>(
      cluster.database,
      'select count(*) from cluster_log',
    );
    expect(Number(count)).toBeLessThan(30);
    await cluster.stop();
  });

  test('kill -9 of PostgreSQL loses no confirmed write, and the cluster goes on when it is back', async () => {
    const cluster = await open();
    const client = cluster.client();
    const confirmed: string[] = [];
    let killed = false;
    const writing = (async () => {
      for (let i = 0; !killed || i < 60; i++) {
        const answer = await client.call('POST', configMaps, named(`w-${i}`)).catch(() => undefined);
        if (answer?.code === 201) confirmed.push(`w-${i}`);
        if (killed && answer?.code !== 201) break;
      }
    })();
    await eventually(() => expect(confirmed.length).toBeGreaterThan(20));
    await postgres.kill();
    killed = true;
    await writing;
    const refused = await client.call('POST', configMaps, named('meanwhile'));
    expect(refused).toMatchObject({ code: 500, body: { kind: 'Status', reason: 'InternalError' } });
    await postgres.start();
    await eventually(async () =>
      expect(await client.call('POST', configMaps, named('after'))).toMatchObject({ code: 201 }),
    );
    const names = async () =>
      ((await cluster.client().call('GET', configMaps)).body.items as Array<{ metadata: { name: string } }>).map(
        ({ metadata }) => metadata.name,
      );
    expect(await names()).toEqual(expect.arrayContaining([...confirmed, 'after']));
    const seen = (await names()).sort();
    await cluster.restart();
    expect((await names()).sort()).toEqual(seen);
    await cluster.stop();
  });

  test('a second process on the same database is refused with one sentence, and the first goes on', async () => {
    const cluster = await open();
    await expect(startEmbedded({ database: cluster.database })).rejects.toThrow(
      'another process already runs the embedded cluster on this database; stop it first, or give this one a database of its own',
    );
    expect(await cluster.client().call('POST', configMaps, named('still'))).toMatchObject({ code: 201 });
    await cluster.stop();
  });

  test('who loses the lock cannot write any more', async () => {
    const cluster = await open();
    const thief = new pg.Client({
      ...cluster.database,
      user: cluster.database.username,
      database: cluster.database.dbname,
    });
    await thief.connect();
    await thief.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
    );
    await eventually(async () => {
      const { rows } = await thief.query(
        `select pg_try_advisory_lock(hashtext('gateway-operator embedded cluster'), hashtext(current_schema())) as got`,
      );
      expect(rows[0].got).toBe(true);
    });
    expect(await cluster.client().call('POST', configMaps, named('stolen'))).toMatchObject({
      code: 500,
      body: { message: expect.stringContaining('another process already runs the embedded cluster') },
    });
    await thief.end();
    await eventually(async () =>
      expect(await cluster.client().call('POST', configMaps, named('back'))).toMatchObject({ code: 201 }),
    );
    await cluster.stop();
  });

  test('of many writers that saw the same version exactly one wins', async () => {
    const cluster = await open();
    const client = cluster.client();
    const { body } = await client.call('POST', configMaps, named('contested'));
    const codes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        client
          .call('PUT', `${configMaps}/contested`, { ...body, data: { winner: String(i) } })
          .then(({ code }) => code),
      ),
    );
    expect(codes.filter((code) => code === 200)).toHaveLength(1);
    expect(codes.filter((code) => code === 409)).toHaveLength(19);
    await cluster.stop();
  });

  test('patches without a version never lose each other', async () => {
    const cluster = await open();
    const client = cluster.client();
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
    await cluster.stop();
  });

  test('who follows a watch knows what a list would show, whatever many writers do at once', async () => {
    const cluster = await open();
    const client = cluster.client();
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
    await eventually(() => {
      const known = new Map<unknown, { metadata: object }>();
      for (const { type, object } of watch.events) {
        if (type === 'DELETED') known.delete(object.metadata.name);
        else known.set(object.metadata.name, object);
      }
      expect(versions(known.values())).toEqual(versions(body.items as Array<{ metadata: object }>));
    });
    const order = watch.events.map(({ object }) => Number(object.metadata.resourceVersion));
    expect(order).toEqual(order.toSorted((left, right) => left - right));
    watch.close();
    await cluster.stop();
  });

  test('no token, a wrong token and a wrong port get one clear answer', async () => {
    const cluster = await open();
    const stranger = createClient({ url: cluster.server().cluster.url, ca: cluster.server().tls.ca, token: 'wrong' });
    expect(await stranger.call('GET', '/api/v1/namespaces')).toMatchObject({
      code: 401,
      body: { kind: 'Status', reason: 'Unauthorized' },
    });
    const port = Number(new URL(cluster.server().cluster.url).port);
    await expect(startEmbedded({ database: await postgres.createDatabase(), port })).rejects.toThrow(
      `port ${port} is taken`,
    );
    await cluster.stop();
  });

  test('ten thousand objects are written, listed and selected within seconds', async () => {
    const cluster = await open();
    const client = cluster.client();
    await client.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', widgetDefinition);
    const widgets = `/apis/${group}/v1alpha1/namespaces/default/widgets`;
    const elapsed = startStopwatch();
    for (let batch = 0; batch < 100; batch++) {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          client.call('POST', widgets, widget(`w-${batch}-${i}`, { color: i === 7 ? 'green' : 'red' })),
        ),
      );
      expect(answers.every(({ code }) => code === 201)).toBe(true);
    }
    const written = elapsed();
    const all = await client.call('GET', widgets);
    const listed = elapsed();
    const some = await client.call('GET', `${widgets}?fieldSelector=spec.color=green`);
    const selected = elapsed();
    expect(all.body.items).toHaveLength(10_000);
    expect(some.body.items).toHaveLength(100);
    expect(written).toBeLessThan(120_000);
    expect(listed - written).toBeLessThan(5_000);
    expect(selected - listed).toBeLessThan(5_000);
    const restarting = startStopwatch();
    await cluster.restart();
    expect(restarting()).toBeLessThan(20_000);
    expect((await cluster.client().call('GET', widgets)).body.items).toHaveLength(10_000);
    console.info(
      `10,000 objects: written in ${Math.round(written)} ms, listed in ${Math.round(listed - written)} ms, selected in ${Math.round(selected - listed)} ms`,
    );
    await cluster.stop();
  }, 240_000); // four seconds on a quiet machine
});

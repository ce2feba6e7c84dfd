// Do all three functions run in real workerd, with a kube-apiserver, Upstash and a PostgreSQL, and does money stay what
// it is there?
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { put, resourceOf } from '../../infra/packaging/manifests/apply.ts';
import { webhookConfigurations } from '../../infra/packaging/manifests/webhooks.ts';
import { keyValueOf } from '../gateway/instance.ts';
import { startCluster } from '../support/clusters.ts';
import { whyNoControlPlane } from '../support/control-plane.ts';
import { eventually } from '../support/eventually.ts';
import { startRedis, type TestRedis, whyNoRedis } from '../support/redis.ts';
import { linkBundles, sharedPostgres } from '../support/shared-servers.ts';
import { describeUnless } from '../support/skip-unless.ts';
import { startUpstash, type TestUpstash, TOKEN } from '../support/upstash.ts';
import { withClaude } from './claude.ts';
import { gatewayWorker } from './gateway-worker.ts';
import { type RunningWorkers, startWorkers, type WorkerOfTest } from './miniflare.ts';
import { RECONCILE_TOKEN } from './node-process.ts';
import { startWorld, type TestWorld } from './world.ts';

const missing = whyNoRedis();
const SEGMENT = 'an-unguessable-segment';

/** A real one where there is one. */
const cluster = whyNoControlPlane() === undefined ? 'real' : 'embedded';

describeUnless(missing, 'all three functions as Workers', () => {
  let world: TestWorld;
  let redis: TestRedis;
  let upstash: TestUpstash;
  let workers: RunningWorkers;
  let value: string;

  beforeAll(async () => {
    [world, redis] = await Promise.all([
      sharedPostgres().then((postgres) => startWorld(postgres, startCluster(cluster))),
      startRedis(),
    ]);
    upstash = await startUpstash(redis);
    await linkBundles(world.folder);
    const ca = join(world.folder, 'ca.pem');
    writeFileSync(ca, world.certificates.ca);
    workers = await startWorkers(deployed(), ca, { tls: world.certificates });
    const base = `${workers.url}/${SEGMENT}`;
    for (const one of webhookConfigurations({ base, caBundle: world.certificates.ca }))
      await put(world.cluster, one, false);
    const store = { host: base64(upstash.url), port: base64('443'), password: base64(TOKEN) };
    await world.apply(
      withClaude(world.sample()).map((object) => {
        if (object.kind === 'GatewayInstance')
          return { ...object, spec: { ...Object(object.spec), storeResponses: true } };
        return object.metadata.name === 'sample-store' ? { ...object, data: store } : object;
      }),
    );
    await resync();
    value = String((await statusOf('VirtualKey', 'example-service'))?.keyValue);
  });
  afterAll(async () => {
    await workers?.stop();
    upstash?.stop();
    await redis?.stop();
    await world?.stop();
  });

  const deployed = (): ReadonlyArray<WorkerOfTest> => {
    const common = { API_SERVER: world.url, API_TOKEN: world.token, RECONCILE_TOKEN };
    const scriptPath = (name: string) => join(world.folder, `cloudflare/${name}.mjs`);
    return [
      {
        name: 'admission',
        scriptPath: scriptPath('admission'),
        services: { RECONCILE: 'reconcile' },
        bindings: { ...common, PATH_SECRETS: SEGMENT },
      },
      {
        name: 'reconcile',
        scriptPath: scriptPath('reconcile'),
        services: {},
        bindings: common,
        namespaces: { SNAPSHOTS: {} },
      },
      { ...gatewayWorker({ world, objects: withClaude(world.sample()), upstash }), isDirect: true },
    ];
  };
  const resync = async () => expect(await workers.scheduled('reconcile'), workers.printed()).toBe('ok');
  const statusOf = async (kind: string, name: string) =>
    (await world.cluster.get(resourceOf(kind), 'default', name))?.status as Record<string, unknown> | undefined;
  const client = (apiKey = value, maxRetries = 0) => new OpenAI({ apiKey, baseURL: workers.direct, maxRetries });
  /**
   * On a busy machine the store may answer too late for a request, which is then refused for free (503) and asked
   * again.
   */
  const patient = () => client(value, 5);
  const ask = { model: 'sample-small', messages: [{ role: 'user' as const, content: 'Say hello.' }] };
  const booked = async () => {
    const rows = await world.postgres.query<{ count: string; cost: string }>(
      world.database,
      'select count(*), coalesce(sum(cost), 0) as cost from gateway_operator.ledger_row',
    );
    return { count: Number(rows[0]?.count), cost: BigInt(rows[0]?.cost ?? 0) };
  };
  const ownKey = async () => {
    const answer = await fetch(`${workers.direct}/key`, { headers: { authorization: `Bearer ${value}` } });
    return (await answer.json()) as { currentSpend: string; maxBudget: string };
  };

  test('the API server asks the Worker about each object: a mistake is refused with what to do', async () => {
    const wrong = { spec: { models: ['sample-smal'] } };
    const written = await world.cluster.patch(resourceOf('VirtualKey'), 'default', 'example-service', wrong);
    expect(written).toMatchObject({ ok: false, message: expect.stringContaining('"sample-small"') });
  });

  test('a completion is charged, plain and streamed, and booked when its reply has ended', async () => {
    const reply = await patient().chat.completions.create(ask);
    expect(reply.choices[0]?.message.content).toMatch(/\S/);
    const stream = await patient().chat.completions.create({ ...ask, stream: true });
    let finish: string | null | undefined;
    for await (const { choices } of stream) finish = choices[0]?.finish_reason ?? finish;
    expect(finish).toBe('stop');
    const { cost } = await eventually(booked, ({ count }) => count === 2);
    expect(cost).toBeGreaterThan(0n);
    expect(nano((await ownKey()).currentSpend)).toBe(cost);
  });

  test('every route spends from the same budget', async () => {
    const before = await booked();
    const openai = patient();
    await openai.embeddings.create({ model: ask.model, input: ['one', 'two three'] });
    const { id } = await openai.responses.create({ model: ask.model, input: 'Hello.' });
    await openai.responses.create({ model: ask.model, input: 'And now?', previous_response_id: id });
    const forged = {
      model: ask.model,
      input: 'And now?',
      previous_response_id: `${id.slice(0, -32)}${'0'.repeat(32)}`,
    };
    await expect(openai.responses.create(forged)).rejects.toThrow(
      'must be an id that this gateway sent to this VirtualKey',
    );
    const streamed = await openai.responses.stream({ model: ask.model, input: 'Hello.' }).finalResponse();
    expect(streamed.status).toBe('completed');
    const anthropic = new Anthropic({ apiKey: value, baseURL: workers.direct, maxRetries: 5 });
    const message = { model: 'sample-claude', max_tokens: 50, messages: ask.messages };
    await anthropic.messages.create(message);
    expect((await anthropic.messages.stream(message).finalMessage()).stop_reason).toBe('end_turn');
    expect((await anthropic.messages.countTokens(message)).input_tokens).toBeGreaterThan(0);
    expect((await anthropic.models.retrieve('sample-claude')).type).toBe('model');
    const after = await eventually(booked, ({ count }) => count === before.count + 6);
    expect(nano((await ownKey()).currentSpend)).toBe(after.cost);
  });

  test('many at the same time are each answered and each booked once', async () => {
    const before = await booked();
    const replies = await Promise.all(Array.from({ length: 25 }, () => patient().chat.completions.create(ask)));
    expect(replies.every(({ choices }) => choices.length === 1)).toBe(true);
    const after = await eventually(booked, ({ count }) => count === before.count + 25);
    expect(nano((await ownKey()).currentSpend)).toBe(after.cost);
  });

  test('a key that nobody made is refused, and the store is not asked about it', async () => {
    await expect(client(keyValueOf('nobody')).models.list()).rejects.toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
    expect((await client().models.list()).data.map(({ id }) => id)).toContain('sample-small');
  });

  test('a client that leaves a stream stops its upstream and is charged for what was streamed', async () => {
    const before = await booked();
    const leaving = new AbortController();
    const stream = await patient().chat.completions.create(
      { ...ask, messages: [{ role: 'user', content: 'word '.repeat(200) }], stream: true },
      { signal: leaving.signal },
    );
    for await (const _ of stream) break;
    leaving.abort();
    const after = await eventually(booked, ({ count }) => count === before.count + 1);
    expect(after.cost).toBeGreaterThan(before.cost);
  });

  test('a store that was emptied is rebuilt by the next request, and nothing that was spent is forgotten', async () => {
    const { cost } = await booked();
    await redis.kill();
    await expect(client().chat.completions.create(ask)).rejects.toMatchObject({
      status: 503,
      code: 'ledger_unavailable',
    });
    await redis.start();
    await eventually(
      () =>
        client()
          .chat.completions.create(ask)
          .then(
            () => 'charged',
            ({ status }) => status,
          ),
      (outcome) => outcome === 'charged',
    );
    const after = await eventually(booked, (now) => now.cost > cost);
    await eventually(ownKey, ({ currentSpend }) => nano(currentSpend) === after.cost);
  });

  test('on the last cent no more is admitted than the budget has', async () => {
    const before = await booked();
    const spent = nano((await ownKey()).currentSpend);
    const limit = spent + 2_000_000n;
    const put = (maxBudget: string) =>
      world.cluster.patch(resourceOf('VirtualKey'), 'default', 'example-service', { spec: { maxBudget } });
    await put(dollars(limit));
    onTestFinished(async () => {
      await put('100');
    });
    await resync();
    await eventually(ownKey, ({ maxBudget }) => nano(maxBudget) === limit);
    const ending = () =>
      client()
        .chat.completions.create(ask)
        .then(
          () => 'charged',
          ({ code }) => String(code),
        );
    const endings: string[] = [];
    // Forty at the same time may take a busy machine longer than the store's deadline: then they ask again.
    const forty = async () => endings.push(...(await Promise.all(Array.from({ length: 40 }, ending))));
    await eventually(forty, () => endings.includes('charged'));
    const expected = new Set(['charged', 'budget_exceeded', 'budget_held', 'ledger_unavailable']);
    expect([...new Set(endings).difference(expected)]).toEqual([]);
    const chargedCount = endings.filter((ending) => ending === 'charged').length;
    const { cost } = await eventually(booked, ({ count }) => count >= before.count + chargedCount);
    expect(chargedCount).toBeLessThan(endings.length);
    expect(cost).toBeLessThanOrEqual(limit);
  });
});

const base64 = (text: string) => Buffer.from(text).toString('base64');
function nano(text: string): bigint {
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(9, '0'));
}
const dollars = (amount: bigint) => `${amount / 1_000_000_000n}.${`${amount % 1_000_000_000n}`.padStart(9, '0')}`;

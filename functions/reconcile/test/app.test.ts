// HTTP answers of the reconciler (DESIGN 9 and 10).
import { beforeEach, expect, test } from 'vitest';
import { createTime } from '../../../test/gateway/time.ts';
import { createHarness, type Harness } from '../../../test/reconcile/harness.ts';
import { makeInstance, makeKey, makeSecrets } from '../../../test/reconcile/objects.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { PROCESS_LIMITS } from '../limits.ts';

let harness: Harness;
beforeEach(async () => {
  harness = createHarness();
  await harness.apply(...makeSecrets(), makeInstance(), makeKey());
});
const post = (path = '/', init: RequestInit = {}) => harness.app.request(path, { method: 'POST', ...init });

test('an empty POST runs a resync; the answer has its counts', async () => {
  const answer = await post();
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({
    observed: { GatewayInstance: 1, VirtualKey: 1 },
    actions: {
      AddFinalizer: 2,
      PutSecret: 1,
      OpenInstance: 1,
      PublishSnapshot: 1,
      RecordEvent: 3,
      PutScope: 2,
      WriteStatus: 2,
    },
    failed: {},
  });
});

test('a dry run lists the plan as JSON, or as lines for people', async () => {
  const [first] = await harness.dryRun();
  expect(first).toEqual({
    action: 'AddFinalizer',
    kind: 'GatewayInstance',
    namespace: 'default',
    name: 'main',
    why: 'it will be recorded in its database',
  });
  const text = await post('/?dry-run=true', { headers: { accept: 'text/plain' } });
  expect(text.headers.get('content-type')).toMatch(/^text\/plain/);
  expect(await text.text()).toMatch(
    /^[+] AddFinalizer VirtualKey default\/chat: it will have a claim and spend in the database$/m,
  );
  expect(harness.writes()).toBe(5);
  await post();
  expect(await (await post('/?dry-run=true')).json()).toEqual({ plan: [] });
  expect(await (await post('/?dry-run=true', { headers: { accept: 'text/plain' } })).text()).toMatch(/^Nothing to do/);
});

test('a dry-run parameter that is neither true nor false is refused, and nothing is done', async () => {
  const answer = await post('/?dry-run=1');
  expect(answer.status).toBe(400);
  expect(harness.writes()).toBe(5);
  expect((await post('/?dry-run=false')).status).toBe(200);
});

test('an event reconciles the object that it names, and what that object needs', async () => {
  const report = await harness.trigger('VirtualKey', 'chat');
  expect(report.observed).toEqual({ GatewayInstance: 1, VirtualKey: 1 });
  expect(await harness.trigger('VirtualKey', 'not-yet')).toEqual({
    observed: {},
    actions: {},
    failed: {},
    underWay: 1,
    notFound: true,
  });
  expect(await harness.trigger('Pod', 'not-ours')).toEqual({ observed: {}, actions: {}, failed: {} });
});

test('a limited number of triggers run concurrently, a quarter of them for one namespace; a resync does not wait for them', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  const begun: Array<string | undefined> = [];
  harness.cluster.inject(async ({ verb, resource, name }) => {
    if (verb !== 'get' || resource.kind !== 'VirtualKey' || name === 'chat') return undefined;
    begun.push(name);
    await go;
    return undefined;
  });
  const names = Array.from({ length: 40 }, (_, index) => `absent-${index}`);
  const triggers = names.map((name) => harness.trigger('VirtualKey', name));
  await harness.resync();
  const share = PROCESS_LIMITS.triggers / 4;
  expect(begun).toEqual(names.slice(0, share));
  triggers.push(harness.trigger('VirtualKey', 'of-another', 'other'));
  await eventually(
    () => begun.at(-1),
    (last) => last === 'of-another',
  );
  expect(begun).toHaveLength(share + 1);
  resolve();
  for (const report of await Promise.all(triggers)) expect(report.underWay).toBe(1);
  expect(begun.toSorted()).toEqual([...names, 'of-another'].toSorted());
});

test('too many triggers of one namespace are refused with 429; those of another namespace run', async () => {
  const { promise: go, resolve } = Promise.withResolvers<void>();
  harness.cluster.inject(async ({ verb, namespace }) => {
    if (verb === 'get' && namespace === 'greedy') await go;
    return undefined;
  });
  const send = (namespace: string) =>
    post('/', {
      headers: { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 'dev.gateway-operator.trigger' },
      body: JSON.stringify({ kind: 'VirtualKey', namespace, name: 'absent' }),
    });
  const sent = Array.from({ length: 600 }, () => send('greedy'));
  expect((await send('default')).status).toBe(200);
  resolve();
  const answers = await Promise.all(sent);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(40);
  const refused = answers.find(({ status }) => status === 429);
  expect(await refused?.json()).toEqual({ error: expect.stringMatching(/^too many requests are waiting/) });
});

test('one resync runs at a time, which bounds the memory; triggers do not wait for it', async () => {
  const begun: Array<() => void> = [];
  let isHeld = true;
  harness.cluster.inject(async ({ verb, resource }) => {
    if (isHeld && verb === 'list' && resource.kind === 'GatewayInstance')
      await new Promise<void>((resolve) => begun.push(resolve));
    return undefined;
  });
  const resyncs = [harness.resync(), harness.resync()];
  await harness.trigger('VirtualKey', 'chat');
  expect(begun).toHaveLength(1);
  isHeld = false;
  begun[0]?.();
  for (const { failed } of await Promise.all(resyncs)) expect(failed).toEqual({});
});

test('an invalid body is answered with 400 and the problem', async () => {
  const answer = await post('/', { body: '{"hello":1}', headers: { 'content-type': 'application/json' } });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toEqual({ error: expect.stringMatching(/neither empty/) });
});

test('an API server that cannot list is answered with 503, and nothing is done', async () => {
  harness.cluster.inject(() => {
    throw new Error('connect ECONNREFUSED');
  });
  const answer = await post();
  expect(answer.status).toBe(503);
  expect(await answer.json()).toEqual({ error: expect.stringMatching(/ECONNREFUSED/) });
});

test('the function serves health and readiness; the platform serves metrics', async () => {
  for (const path of ['/healthz', '/readyz']) expect((await harness.app.request(path)).status).toBe(200);
  expect((await harness.app.request('/metrics')).status).toBe(404);
  expect((await harness.app.request('/')).status).toBe(404);
});

test('a body that is too large or too slow is refused and not read to its end, and nothing is done', async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      sent += 1;
      controller.enqueue(new Uint8Array(32 * 1024));
    },
  });
  const large = await post('/', { body: endless, duplex: 'half' } as RequestInit);
  expect([large.status, await large.json()]).toEqual([413, { error: 'the body is larger than 65536 bytes' }]);
  expect(sent).toBeLessThan(5);
  const time = createTime();
  const slow = createHarness({ timer: time.timer });
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
  };
  const stalled = new ReadableStream({ pull: () => new Promise(() => {}), cancel });
  const late = slow.app.request('/', { method: 'POST', body: stalled, duplex: 'half' } as RequestInit);
  await time.pass(10_000);
  expect([(await late).status, isCancelled]).toEqual([408, true]);
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
  expect((await post('/', { body: broken, duplex: 'half' } as RequestInit)).status).toBe(400);
  expect(harness.writes()).toBe(5);
});

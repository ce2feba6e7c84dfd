// Does the gateway run where there is no Node? The whole app in workerd, with nothing of Node's allowed, against the
// sample upstream.
import { join } from 'node:path';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KEY } from '../../../../../test/gateway/instance.ts';
import { BROKEN_OFF } from '../../../../../test/gateway/stage.ts';
import { createSampleUpstream, type SampleUpstream } from '../../sample-upstream/server.ts';

const root = join(import.meta.dirname, '../../../../..');

/** A Worker that holds a gateway with one key; everything but the ledger and the database is the real thing. */
const worker = (upstream: string) => `
import { createGateway } from '${root}/functions/gateway/app.ts';
import { createLedgerFake } from '${root}/test/gateway/ledger.ts';
import { entry, keyRecord, snapshotOf } from '${root}/test/gateway/instance.ts';
import { policiesOf } from '${root}/test/doubles/policies.ts';
import { textOf } from '${root}/test/gateway/stage.ts';
import { toExchange } from '${root}/infra/runtime/fetch/http-exchange.ts';
import { createFetchUpstream } from '${root}/infra/adapters/upstream/fetch.ts';

const ledger = createLedgerFake(Date.now);
const timer = (millis, callback) => {
  const running = setTimeout(callback, millis);
  return () => clearTimeout(running);
};
const price = { input: '1', output: '2' };
const models = ['echo', 'chatterbox', 'cut', 'error-500', 'compressed'].flatMap((model) => [
  entry(model, { model, apiBase: '${upstream}/v1', price }),
  entry('claude-' + model, { model, provider: 'anthropic', apiBase: '${upstream}', price }),
]);
const snapshot = snapshotOf(models, { retries: 0 });
const quiet = () => {};
let ids = 0;
const handle = createGateway({
  ledger,
  timer,
  snapshots: { current: () => snapshot },
  credentials: { read: () => 'upstream-key' },
  policies: policiesOf(() => keyRecord({ limit: '1000', anchor: Date.now() })),
  upstream: createFetchUpstream({ fetch: (...args) => fetch(...args), timer }),
  clock: { now: () => Date.now() },
  ids: { next: () => String((ids += 1)) },
  hash: (text) => text,
  random: (count) => crypto.getRandomValues(new Uint8Array(count)),
  log: { info: quiet, warn: quiet, error: quiet },
  metrics: { add: quiet, set: quiet, observe: quiet },
});
export default {
  fetch(request, env, ctx) {
    if (new URL(request.url).pathname !== '/settled') {
      const { exchange, response } = toExchange(request);
      ctx.waitUntil(handle(exchange));
      return request.headers.has('x-read') ? response.then(textOf).then((text) => new Response(text)) : response;
    }
    const settled = ledger.settled.map((one) => ({ ...one, cost: String(one.cost) }));
    return Response.json({ settled, held: ledger.liveReservations() });
  },
};
`;

let sample: SampleUpstream;
let miniflare: Miniflare;
let url: URL;

beforeAll(async () => {
  sample = await createSampleUpstream({ port: 0, key: 'upstream-key' });
  const bundle = await build({
    stdin: { contents: worker(sample.url), resolveDir: root, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['workerd'],
    // Workers have Node's modules, as in production.
    external: ['node:*'],
  });
  miniflare = new Miniflare({
    modules: true,
    script: bundle.outputFiles[0]?.text ?? '',
    compatibilityDate: '2026-07-01',
    compatibilityFlags: ['nodejs_compat', 'enable_request_signal'],
  });
  url = await miniflare.ready;
});

afterAll(async () => {
  await miniflare.dispose();
  await sample.close();
});

const ask = (body: object, signal?: AbortSignal, path = '/chat/completions', headers = {}) =>
  fetch(new URL(`/v1${path}`, url), {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, ...headers },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'one two three' }], ...body }),
    ...(signal === undefined ? {} : { signal }),
  });
const settled = async () => {
  const answer: unknown = await (await fetch(new URL('/settled', url))).json();
  return { settled: [], ...Object(answer) };
};

test('a plain reply and a stream are served and charged', async () => {
  const plain = await ask({ model: 'echo' });
  expect([plain.status, await plain.json()]).toMatchObject([
    200,
    { choices: [{ message: { content: 'one two three' } }] },
  ]);
  const text = await (await ask({ model: 'echo', stream: true })).text();
  expect(text).toMatch(/one.*two.*three.*\[DONE\]\n\n$/s);
  expect(text).not.toContain('"usage":{');
  expect(await settled()).toMatchObject({
    held: 0,
    settled: [
      { tokens: { output: 3 }, estimated: false },
      { tokens: { output: 3 }, estimated: false },
    ],
  });
});

test('a client that leaves a stream stops the upstream and is charged', async () => {
  const client = new AbortController();
  const response = await ask({ model: 'chatterbox', stream: true }, client.signal);
  await response.body?.getReader().read();
  client.abort();
  await expect.poll(() => sample.stats.read().models.chatterbox?.abandoned).toBe(1);
  await expect
    .poll(settled)
    .toMatchObject({ held: 0, settled: [{}, {}, { estimated: true, identifier: 'chatterbox' }] });
});

test.each(['compressed', 'claude-echo', 'claude-compressed'])(
  '%s is served and charged too, whole and streamed',
  async (model) => {
    const before = [...(await settled()).settled].length;
    expect(await (await ask({ model, max_tokens: 2 })).json()).toMatchObject({
      choices: [{ finish_reason: 'length' }],
    });
    const text = await (await ask({ model, max_tokens: 2, stream: true })).text();
    expect(text).toMatch(/"finish_reason":"length".*\[DONE\]\n\n$/s);
    const counted = { tokens: { output: 2 }, estimated: false };
    expect((await settled()).settled.slice(before)).toMatchObject([counted, counted]);
  },
);

test('failures are told as everywhere', async () => {
  expect((await ask({ model: 'error-500' })).status).toBe(502);
  expect((await fetch(new URL('/models', url))).status).toBe(401);
});

// On a socket of its own, workerd ends a chunked body as if it were whole; Cloudflare's edge is what clients see.
test.each([
  ['/chat/completions', { model: 'cut' }, 'data: {"error":{"message"'],
  ['/messages', { model: 'claude-cut', max_tokens: 50 }, 'event: error\n'],
  [
    '/responses',
    { model: 'cut', input: 'one two three four five six', messages: undefined },
    'event: response.failed\n',
  ],
])('a broken stream of %s ends with an error in the stream, and then of it', async (path, body, error) => {
  const asked = { stream: true, ...body };
  expect(await (await ask(asked, undefined, path)).text()).toContain(error);
  const text = await (await ask(asked, undefined, path, { 'x-read': '1' })).text();
  expect(text).toContain(error);
  expect(text.slice(-BROKEN_OFF.length)).toBe(BROKEN_OFF);
});

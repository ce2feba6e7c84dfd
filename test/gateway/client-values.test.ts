// Texts that clients choose: however many different ones come, a gateway process keeps none of them.
import { Agent, createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway } from '../../functions/gateway/app.ts';
import { createLog } from '../../infra/adapters/telemetry/log.ts';
import { createMetrics } from '../../infra/adapters/telemetry/metrics.ts';
import { createUpstream } from '../../infra/adapters/upstream/undici.ts';
import { nodeDependencies } from '../../infra/runtime/node/platform.ts';
import { serve } from '../../infra/runtime/node/serve.ts';
import { policiesOf } from '../doubles/policies.ts';
import { message } from './anthropic.ts';
import { entry, KEY, keyRecord, keyValueOf, snapshotOf } from './instance.ts';
import { createLedgerFake } from './ledger.ts';
import { memory } from './memory.ts';

/** Characters of one value, and requests before each measurement. */
const LENGTH = 6_000;
const REQUESTS = 200;
/** Bytes that a request may leave behind: far less than a value, which would be kept as part of several texts. */
const MAX_LEFT = LENGTH / 4;

interface SentBody {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const CHAT = { model: 'claude', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] };
const MESSAGES = '/v1/messages';
const COMPLETIONS = '/v1/chat/completions';

/** What a client may choose freely, each time another text. */
const CHOSEN: ReadonlyArray<[string, (text: string) => SentBody]> = [
  ['queries of messages', (text) => ({ path: `${MESSAGES}?${text.slice(-1_000)}` })],
  ['queries that are too long', (text) => ({ path: `${MESSAGES}?${text}` })],
  ['queries of count_tokens', (text) => ({ path: `${MESSAGES}/count_tokens?${text.slice(-1_000)}` })],
  ['paths', (text) => ({ path: `/${text}` })],
  ['names of models in paths', (text) => ({ path: `/v1/models/${text}` })],
  ['names of models', (text) => ({ body: { ...CHAT, model: text } })],
  ['key values', (text) => ({ headers: { authorization: `Bearer sk-${text.slice(-900)}` } })],
  ['key values of the right form', (text) => ({ headers: { authorization: `Bearer ${keyValueOf(text)}` } })],
  ['names of conversations', (text) => ({ body: { ...CHAT, metadata: { user_id: text } } })],
  [
    'names of members and tools',
    (text) => ({ body: { ...CHAT, [text]: 1, tools: [{ name: text, input_schema: {} }] } }),
  ],
  ['keys of caches', (text) => ({ path: COMPLETIONS, body: { ...CHAT, prompt_cache_key: text, user: text } })],
  ['features and versions', (text) => ({ headers: { 'anthropic-beta': text, 'anthropic-version': text } })],
  [
    'names of requests and hosts',
    (text) => ({ headers: { 'x-request-id': text.slice(-100), host: text.slice(-100) } }),
  ],
];

describe('a process keeps no memory of different', () => {
  const provider = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(incoming.url?.includes('count') ? '{"input_tokens":3}' : message('x'));
    });
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const upstream = createUpstream();
  let gateway: Awaited<ReturnType<typeof serve>>;

  beforeAll(async () => {
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    const apiBase = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
    const snapshot = snapshotOf([entry('claude', { provider: 'anthropic', apiBase })]);
    const node = nodeDependencies();
    const record = keyRecord({ limit: '1000000', anchor: Date.now() });
    const handle = createGateway({
      ...node,
      upstream,
      snapshots: { current: () => snapshot },
      credentials: { read: () => 'provider-key' },
      policies: policiesOf((hash) => (hash === node.hash(KEY) ? record : undefined)),
      ledger: forgetful(createLedgerFake(Date.now)),
      log: createLog({ write: () => undefined }),
      metrics: createMetrics(),
    });
    gateway = await serve({ handle, port: 0, host: '127.0.0.1' });
    // Compiled code takes memory too.
    for (const toRequest of [() => ({}), () => ({ path: COMPLETIONS })]) await sendSome(toRequest);
  });
  afterAll(async () => {
    agent.destroy();
    await gateway.close(0);
    await upstream.close();
    provider.close();
  });

  let next = 0;
  async function sendSome(toRequest: (text: string) => SentBody): Promise<void> {
    for (let sent = 0; sent < REQUESTS; sent += 10) {
      await Promise.all(
        Array.from({ length: 10 }, () => {
          next += 1;
          return sendOne(toRequest(`${'x'.repeat(LENGTH)}${next}`));
        }),
      );
    }
  }

  function sendOne({ path = MESSAGES, headers = {}, body = CHAT }: SentBody): Promise<void> {
    const { port } = new URL(gateway.url);
    const own = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers };
    return new Promise((resolve, reject) => {
      const method = path.includes('/models/') ? 'GET' : 'POST';
      const sent = send({ agent, port, host: '127.0.0.1', path, method, headers: own }, (incoming) => {
        incoming.resume().on('end', resolve).on('error', reject);
      });
      sent.on('error', reject).end(method === 'GET' ? undefined : JSON.stringify(body));
    });
  }

  test.each(CHOSEN)('%s', async (_, toRequest) => {
    await sendSome(toRequest);
    const before = await memory();
    await sendSome(toRequest);
    expect((await memory()) - before).toBeLessThan(REQUESTS * MAX_LEFT);
  });
});

/** The fake keeps whatever it was asked, for tests that look at it. */
function forgetful(ledger: ReturnType<typeof createLedgerFake>) {
  return {
    ...ledger,
    settle: async (...call: Parameters<typeof ledger.settle>) => {
      await ledger.settle(...call);
      for (const list of [ledger.asked, ledger.settled, ledger.progressed]) list.length = 0;
    },
  };
}

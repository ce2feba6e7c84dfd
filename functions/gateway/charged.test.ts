// What is charged for a request, by how it ended: each row of the table in docs/ledger.md, on every path that spends, in both dialects?
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { COUNT, errorBody, message, START, STOP, words } from '../../test/gateway/anthropic.ts';
import { entry, snapshotOf } from '../../test/gateway/instance.ts';
import { stage } from '../../test/gateway/stage.ts';
import { settleDown } from '../../test/gateway/time.ts';
import {
  breaksAfter,
  chunk,
  completion,
  MESSAGES,
  type Script,
  SSE,
  streamed,
  stuckAfter,
} from '../../test/gateway/upstream.ts';

type Provider = 'openai' | 'anthropic';

const PATHS = ['/chat/completions', '/v1/chat/completions'] as const;
const PROVIDERS: readonly Provider[] = ['openai', 'anthropic'];
const CHAT = { model: 'gpt', messages: MESSAGES };
/** At a thousand nano-dollars a token of input and two thousand of output. */
const WHOLE = { openai: completion('hello'), anthropic: message('hello') };
const COST = 10n * 1000n + 5n * 2000n;
const STREAM = { openai: streamed(['a', 'b']), anthropic: [START, ...words('a', 'b'), COUNT, STOP] };
const STREAM_COST = 10n * 1000n + 3n * 2000n;
const BEGUN = { openai: [chunk({ content: 'a' }), chunk({ content: 'b' })], anthropic: [START, ...words('a', 'b')] };
const REFUSAL = { openai: '{"error":{"message":"No."}}', anthropic: errorBody('invalid_request_error') };

/** A gateway whose provider of this dialect answers so, asked on this path. */
function open(provider: Provider, path: string, script: Script) {
  const world = stage({ snapshot: snapshotOf([entry('gpt', { provider })], { retries: 0 }), script });
  const ask = (more: object = {}, signal?: AbortSignal) =>
    world.chat({ ...CHAT, ...more }, { path, ...(signal === undefined ? {} : { signal }) });
  return { ...world, ask };
}

const IN_PART = { estimated: true, tokens: { output: expect.any(Number) } };
const PROMPT = { estimated: true, tokens: { output: 0 } };
const stream = { stream: true };

const ROWS: Readonly<Record<string, (provider: Provider, path: string) => Promise<void>>> = {
  async completed(provider, path) {
    const plain = open(provider, path, () => ({ body: WHOLE[provider] }));
    await plain.ask();
    expect(plain.ledger.settled).toMatchObject([{ cost: COST, estimated: false }]);
    const streaming = open(provider, path, () => ({ headers: SSE, body: STREAM[provider] }));
    await (await streaming.ask(stream)).text();
    expect(streaming.ledger.settled).toMatchObject([{ cost: STREAM_COST, estimated: false }]);
  },
  async 'a stream that the client left'(provider, path) {
    const { ask, ledger, fake } = open(provider, path, () => ({
      headers: SSE,
      body: stuckAfter(...BEGUN[provider]),
    }));
    const reader = (await ask(stream)).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await settleDown();
    expect(fake.requests[0]?.signal.aborted).toBe(true);
    expect(ledger.settled).toMatchObject([IN_PART]);
    expect(ledger.settled[0]?.cost).toBeGreaterThan(0n);
  },
  async 'a plain request that the client left'(provider, path) {
    const client = new AbortController();
    const { promise, resolve } = Promise.withResolvers<{ body: string }>();
    const { ask, ledger, fake } = open(provider, path, () => promise);
    const response = ask({}, client.signal);
    await settleDown();
    client.abort();
    resolve({ body: WHOLE[provider] });
    await response;
    expect(fake.requests[0]?.signal.aborted).toBe(false);
    expect(ledger.settled).toMatchObject([{ cost: COST, estimated: false }]);
  },
  async 'an upstream that rejected the request, or never received it'(provider, path) {
    for (const more of [{}, stream]) {
      const { ask, ledger } = open(provider, path, () => ({ status: 400, body: REFUSAL[provider] }));
      expect((await ask(more)).status).toBe(400);
      expect([ledger.settled.length, ledger.released.length, ledger.held()]).toEqual([0, 1, 0]);
    }
  },
  async 'an upstream that received the request and fell silent or broke off before any reply'(provider, path) {
    const scripts: readonly Script[] = [() => new Promise(() => {}), () => ({ body: breaksAfter() })];
    for (const [script, more] of scripts.flatMap((one) => [[one, {}] as const, [one, stream] as const])) {
      const { ask, ledger, clock } = open(provider, path, script);
      const response = ask(more);
      await settleDown();
      await clock.pass(5_000);
      expect((await response).status).toBeGreaterThanOrEqual(502);
      expect(ledger.settled).toMatchObject([PROMPT]);
      expect(ledger.settled[0]?.cost).toBeGreaterThan(0n);
    }
  },
  async 'an upstream that died in the middle of a stream'(provider, path) {
    const { ask, ledger } = open(provider, path, () => ({ headers: SSE, body: breaksAfter(...BEGUN[provider]) }));
    expect(await (await ask(stream)).text()).toContain('upstream_error');
    expect(ledger.settled).toMatchObject([IN_PART]);
    expect(ledger.settled[0]?.tokens.output).toBeGreaterThan(0);
  },
  async "work that no usage reports (a provider's own tools, priority tiers, background work)"(provider, path) {
    for (const more of [
      { tools: [{ type: 'code_interpreter' }] },
      { service_tier: 'priority' },
      { background: true },
    ]) {
      const { ask, ledger, fake } = open(provider, path, () => ({ body: WHOLE[provider] }));
      expect((await ask(more)).status).toBe(400);
      expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
    }
  },
};

const cases = PROVIDERS.flatMap((provider) => PATHS.map((path) => [provider, path] as const));

describe.each(cases)('behind %s, on %s', (provider, path) => {
  test.each(Object.entries(ROWS))('%s', (_, walk) => walk(provider, path));
});

test('the table of docs/ledger.md has these rows and no others', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/ledger.md'), 'utf8');
  const [, table = ''] = text.split('| how a request ended | charged |\n|---|---|\n');
  const rows = table
    .split('\n\n')[0]
    ?.split('\n')
    .map((line) => line.split(' | ')[0]?.slice(2));
  expect(Object.keys(ROWS)).toEqual(rows);
});

test.each(['/models', '/key', '/healthz', '/readyz', '/metrics', '/nowhere'])(
  'nothing is charged on %s, whatever is sent there',
  async (path) => {
    const { ledger, app, fake } = stage();
    const headers = { authorization: 'Bearer sk-test-key', 'content-type': 'application/json' };
    for (const route of [path, `/v1${path}`]) {
      await app.request(route, { headers });
      await app.request(route, { method: 'POST', headers, body: JSON.stringify(CHAT) });
    }
    expect([ledger.asked.length, fake.requests.length]).toEqual([0, 0]);
  },
);

import { expect, test } from 'vitest';
import { event, START, words } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, snapshotOf } from '../../../test/gateway/instance.ts';
import { CREATED, deltas } from '../../../test/gateway/responses.ts';
import { stage } from '../../../test/gateway/stage.ts';
import { MESSAGES, type Script, SSE } from '../../../test/gateway/upstream.ts';

const KEEPALIVE = 'event: keepalive\ndata: {"type":"keepalive"}\n\n';

test.each([
  ['/messages', 'anthropic', { messages: MESSAGES, max_tokens: 100 }, START, words('word')[0] ?? '', event('ping')],
  ['/responses', 'openai', { input: 'Hello' }, CREATED, deltas('word')[0] ?? '', KEEPALIVE],
])(
  'on %s, a named event of the gateway comes fifteen seconds after the last one of a silent provider',
  async (...row) => {
    const [path, provider, body, first, second, ping] = row;
    const timeouts = { connect: 100, firstByte: 1000, idle: 100_000, total: 600_000 };
    let go: () => void = () => {};
    async function* silent() {
      const encoder = new TextEncoder();
      yield encoder.encode(first);
      await new Promise<void>((resolve) => {
        go = resolve;
      });
      yield encoder.encode(second);
      await new Promise(() => {});
    }
    const script: Script = () => ({ headers: SSE, body: silent() });
    const { app, clock } = stage({ snapshot: snapshotOf([entry('gpt', { provider })], { timeouts }), script });
    const init = {
      method: 'POST',
      headers: { 'x-api-key': KEY },
      body: JSON.stringify({ model: 'gpt', ...body, stream: true }),
    };
    const stream = (await app.request(path, init)).body;
    let heard = '';
    void (async () => {
      for await (const bytes of stream ?? []) heard += new TextDecoder().decode(bytes);
    })();
    await clock.pass(14_999);
    expect(heard).toBe(first);
    await clock.pass(1);
    expect(heard).toBe(first + ping);
    await clock.pass(10_000);
    go();
    await clock.pass(0);
    await clock.pass(14_999);
    expect(heard).toBe(first + ping + second);
    await clock.pass(1);
    await clock.pass(15_000);
    expect(heard).toBe(first + ping + second + ping + ping);
  },
);

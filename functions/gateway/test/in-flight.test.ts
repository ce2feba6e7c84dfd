// The number of requests in flight, by which gateways are scaled.
import { expect, test } from 'vitest';
import { stage } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import { chunk, MESSAGES, SSE, stuckAfter } from '../../../test/gateway/upstream.ts';

test('a stream is in flight until its client leaves, and a refused request until its refusal', async () => {
  const values: number[] = [];
  const metrics = {
    add: () => {},
    observe: () => {},
    set: (name: string, value: number) => {
      if (name === 'gateway_operator_requests_in_flight') values.push(value);
    },
  };
  const script = () => ({ headers: SSE, body: stuckAfter(chunk({ content: 'a' })) });
  const { chat, get } = stage({ script, deps: { metrics } });
  expect(values).toEqual([0]);

  const client = new AbortController();
  const body = { model: 'gpt', stream: true, messages: MESSAGES };
  const response = await chat(body, { signal: client.signal });
  void response.body?.getReader().read();
  await settleDown();
  expect(values).toEqual([0, 1]);

  expect((await chat({ model: 'unknown', messages: MESSAGES })).status).toBe(404);
  expect((await get('/models')).status).toBe(200);
  expect(values).toEqual([0, 1, 2, 1]);

  client.abort();
  await settleDown();
  expect(values).toEqual([0, 1, 2, 1, 0]);
});

// Reservations of messages, and the features that a message may request.
import { describe, expect, test } from 'vitest';
import { KEY } from '../../../test/gateway/instance.ts';
import { sentText } from '../../../test/gateway/upstream.ts';
import { ASK, errorOf, open } from './messages.fixture.ts';

describe('the reservation of a message', () => {
  const reservationOf = async (more: object) => {
    const { ask, ledger } = open({ limit: '1000000' });
    const body = JSON.stringify({ ...ASK, ...more });
    await ask(body);
    return Number((ledger.asked[0]?.amount ?? 0n) / 1000n) - 200 - body.length;
  };
  const LARGER = { 'anthropic-beta': 'files-api-2025-04-14, context-1m-2025-08-07' };
  const SMALLER = { 'anthropic-beta': 'context-management-2025-06-27' };
  const TIERED = { price: { input: '1', output: '0', tiers: [{ above: 500, input: '2', output: '0' }] } };

  test.each([
    ['at most the context window', 500_000n, { price: { input: '1', output: '0' } }, SMALLER],
    ['its bytes where a feature enlarges the window', undefined, { price: { input: '1', output: '0' } }, LARGER],
    ['its bytes where longer prompts have a price', undefined, TIERED, {}],
  ])('is %s', async (_, amount, model, headers) => {
    const { ask, ledger } = open({ limit: '1000000', entry: { ...model, maxInputTokens: 500 } });
    const body = JSON.stringify({ ...ASK, messages: [{ role: 'user', content: 'a'.repeat(1000) }] });
    await ask(body, { 'x-api-key': KEY, ...headers });
    const bytes = BigInt(body.length) * (model === TIERED ? 2000n : 1000n);
    expect(ledger.asked[0]?.amount).toBe(amount ?? bytes);
  });

  test.each([
    ['"anthropic_beta":["a","context-1m-2025-08-07"]', undefined],
    ['"anthropic_beta":["context-1m-2025-08-07"],"anthropic_beta":[],"Anthropic_Beta":["context-1m"]', 500],
  ])('follows features in the body too, each once: %s', async (features, tokens) => {
    const price = { input: '1', output: '0' };
    const { ask, ledger, fake } = open({ limit: '1000000', entry: { price, maxInputTokens: 500 } });
    const messages = JSON.stringify([{ role: 'user', content: 'a'.repeat(1000) }]);
    const body = `{"model":"claude","max_tokens":100,"messages":${messages},${features}}`;
    await ask(body);
    expect(ledger.asked[0]?.amount).toBe(BigInt(tokens ?? body.length) * 1000n);
    expect(sentText(fake.requests[0]).match(/anthropic_beta/gi)).toHaveLength(1);
  });

  test.each(['context-1m', {}, [1], ['a', ['b']]])('is refused if a feature is no text: %j', async (features) => {
    const { ask, ledger } = open({});
    const response = await ask({ ...ASK, anthropic_beta: features });
    expect(await errorOf(response)).toEqual([400, 'error', 'invalid_request_error', 'invalid_request']);
    expect(ledger.asked).toEqual([]);
  });

  const image = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } });

  test.each([
    [
      'text, calls, results and reasoning are their bytes',
      0,
      (data: string) => [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'a', signature: data },
            { type: 'tool_use', id: 't', name: 'n', input: { data } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: data }] }] },
      ],
    ],
    ['an image is its bound', 8_000 - 3000, (data: string) => [{ role: 'user', content: [image(data)] }]],
    [
      'an image in a result is too',
      8_000 - 3000,
      (data: string) => [
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [image(data)] }] },
      ],
    ],
    [
      'a file is its bytes',
      2250 - 3000,
      (data: string) => [
        {
          role: 'user',
          content: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data } }],
        },
      ],
    ],
    [
      'a file of text is its bytes',
      0,
      (data: string) => [
        { role: 'user', content: [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data } }] },
      ],
    ],
    [
      'a file elsewhere is the largest window',
      1_050_000,
      () => [{ role: 'user', content: [{ type: 'document', source: { type: 'url', url: 'https://a' } }] }],
    ],
    [
      'a block that is new to us is its bytes and a file',
      1_050_000,
      (data: string) => [{ role: 'user', content: [{ type: 'hologram', data }] }],
    ],
  ])('%s', async (_, more, messages) => {
    expect(await reservationOf({ messages: messages('a'.repeat(3000)) })).toBe(more);
  });

  test('covers the tokens that tools add to the prompt', async () => {
    expect(await reservationOf({ tools: [{ name: 'a', input_schema: {} }] })).toBe(1000);
    expect(
      await reservationOf({ tools: [{ name: 'a' }, { name: 'b' }, { type: 'bash_20250124', name: 'bash' }] }),
    ).toBe(2000);
  });
});

describe('a limit', () => {
  test('that the budget does not cover is lowered, and a header shows that', async () => {
    const { ask, fake } = open({ limit: '0.0002' });
    const response = await ask(ASK);
    const lowered = Number(response.headers.get('x-gateway-clamped-to'));
    expect(lowered).toBeGreaterThan(0);
    expect(lowered).toBeLessThan(100);
    expect(fake.sent()).toEqual({ ...ASK, model: 'real-claude', max_tokens: lowered });
  });

  test('is never lowered to less than the budget of reasoning: the request is refused', async () => {
    const { ask, fake } = open({ limit: '0.0003' });
    const thinking = { type: 'enabled', budget_tokens: 90 };
    expect(await errorOf(await ask({ ...ASK, thinking }))).toEqual([429, 'error', 'billing_error', 'budget_exceeded']);
    expect(fake.requests).toEqual([]);
  });

  test('that is absent becomes that of the reservation', async () => {
    const { ask, fake } = open();
    const { max_tokens: _, ...body } = ASK;
    await ask(body);
    expect(fake.sent()).toMatchObject({ max_tokens: 16_384 });
  });
});

describe('tools that the client runs, and members without a further cost,', () => {
  test.each([
    [
      {
        tools: [
          { type: 'bash_20250124', name: 'bash' },
          { type: 'custom', name: 'a', defer_loading: true },
        ],
      },
    ],
    [
      {
        tools: [
          { type: 'text_editor_20250728', name: 'edit' },
          { type: 'computer_20251124', name: 'c' },
        ],
      },
    ],
    [{ tools: [{ type: 'tool_search_tool_regex_20251119', name: 'search' }] }],
    [{ service_tier: 'auto', speed: 'standard', inference_geo: 'global' }],
    [{ context_management: { edits: [{ type: 'clear_thinking_20251015' }] }, output_config: { effort: 'high' } }],
    [{ thinking: { type: 'disabled' }, metadata: { user_id: '{"device_id":"a"}' } }],
  ])('pass: %j', async (more) => {
    const { ask, fake } = open();
    expect((await ask({ ...ASK, ...more })).status).toBe(200);
    expect(fake.sent()).toMatchObject(more);
  });
});

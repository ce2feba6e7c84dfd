// Conversations: each continues at the entry that stores it.
import { describe, expect, test } from 'vitest';
import { event } from '../../../test/gateway/anthropic.ts';
import { entry, KEY, keyRecord, snapshotOf } from '../../../test/gateway/instance.ts';
import { COMPLETED, CREATED, deltas, markedId, response } from '../../../test/gateway/responses.ts';
import { stage, stageOne, textOf } from '../../../test/gateway/stage.ts';
import { type Script, SSE, sentText } from '../../../test/gateway/upstream.ts';

const ASK = { model: 'gpt', input: 'Say hello.' };

describe('a conversation', () => {
  const models = ['a', 'b', 'c', 'd'].map((identifier) => entry('gpt', { identifier, model: identifier }));
  const ENCRYPTED = [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }];
  const world = (script: Script) => {
    const { chat, fake } = stage({
      snapshot: { ...snapshotOf(models), storeResponses: true },
      script,
      keys: { [KEY]: keyRecord({ limit: '1000' }) },
    });
    const ask = (more: object) => chat({ ...ASK, ...more }, { path: '/responses' });
    return { ask, fake, asked: () => fake.requests.map((_, index) => fake.sent(index).model) };
  };

  test('stays at its entry in all its requests, and other conversations are at other entries', async () => {
    const { ask, asked } = world(() => ({ body: response('hello') }));
    for (const prompt_cache_key of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight']) {
      const { id } = (await (await ask({ prompt_cache_key })).json()) as { id: string };
      await ask({ prompt_cache_key, previous_response_id: id });
      await ask({ prompt_cache_key, input: ENCRYPTED });
    }
    const threes = [...Array(8).keys()].map((at) => asked().slice(at * 3, at * 3 + 3));
    for (const three of threes) expect(new Set(three).size).toBe(1);
    expect(new Set(asked()).size).toBeGreaterThan(1);
  });

  const MADE = { output: ENCRYPTED, id: 'resp_1', previous_response_id: null };

  test('continues at the entry that answered, after a fallback too, by the mark on its encrypted parts', async () => {
    const made: Script = (request) =>
      sentText(request).includes('"model":"d"') ? { body: response('', MADE) } : { status: 401, body: '{}' };
    const { ask, asked, fake } = world(made);
    const answered: Array<{ id: string; output: Array<{ encrypted_content: string }> }> = [];
    while (answered.length === 0) {
      const reply = await ask({ prompt_cache_key: `${asked().length}` });
      if (reply.status === 200) answered.push((await reply.json()) as (typeof answered)[number]);
    }
    const [first] = answered;
    const before = asked().length;
    for (const more of [{ previous_response_id: first?.id }, { input: first?.output }]) {
      expect((await ask({ ...more, prompt_cache_key: 'another' })).status).toBe(200);
    }
    expect(asked().slice(before)).toEqual(['d', 'd']);
    expect(fake.sent(before).previous_response_id).toBe('resp_1');
    expect(fake.sent(before + 1).input).toEqual(ENCRYPTED);
  });

  test('is marked in a stream too, its end included, and nowhere else', async () => {
    const done = event('response.output_item.done', { output_index: 0, item: ENCRYPTED[0] });
    const events = [CREATED, done, ...deltas('resp_1 said'), COMPLETED];
    const { ask, fake } = world(() => ({ headers: SSE, body: events }));
    const text = await textOf(await ask({ stream: true }));
    expect(text.replaceAll(/\.gw([0-9a-f]{8}|[0-9a-f]{40})(?=")/g, '')).toBe(events.join(''));
    expect(text.match(/"id":"resp_1\.gw[0-9a-f]{40}"/g)).toHaveLength(2);
    expect(text.match(/"item_id":"msg_1\.gw[0-9a-f]{40}"/g)).toHaveLength(1);
    const [, id] = /"id":"(resp_1\.gw[0-9a-f]{40})"/.exec(text) ?? [];
    expect(text).toContain(`gAAAA.gw${id?.slice(9, 17)}"`);
    await ask({ previous_response_id: id });
    expect(fake.sent(1).model).toBe(fake.sent(0).model);
  });

  test('of a model with one entry is not marked', async () => {
    const { chat } = stageOne(entry('gpt'), { script: () => ({ body: response('', MADE) }) });
    // Nothing is stored: the conversation continues only by its encrypted reasoning.
    expect(await (await chat(ASK, { path: '/responses' })).text()).toBe(response('', MADE));
  });

  test('whose entry was removed is refused, and the reservation is released', async () => {
    const { ask, asked } = world(() => ({ body: response('hello') }));
    const refused = await ask({ previous_response_id: markedId('resp_1', 'an entry of before') });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'invalid_request' } }]);
    expect(asked()).toEqual([]);
  });

  test.each([[{ previous_response_id: markedId('resp_1', 'b') }], [{ input: ENCRYPTED }]])(
    'that is bound to an account never goes to another: %j',
    async (more) => {
      const { ask, asked } = world(() => ({ status: 401, body: '{}' }));
      expect((await ask(more)).status).toBe(502);
      expect(asked()).toHaveLength(1);
      const free = world(() => ({ status: 401, body: '{}' }));
      await free.ask({});
      expect(new Set(free.asked()).size).toBe(3);
    },
  );
});

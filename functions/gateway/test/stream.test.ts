import { describe, expect, test } from 'vitest';

import { BROKEN_OFF, stage as stageWorld, textOf, WAYS, type World } from '../../../test/gateway/stage.ts';
import { settleDown } from '../../../test/gateway/time.ts';
import {
  breaksAfter,
  chunk,
  DONE,
  MESSAGES,
  type Script,
  SSE,
  streamed,
  stuckAfter,
  USAGE_CHUNK,
} from '../../../test/gateway/upstream.ts';

const CHAT = { model: 'gpt', messages: MESSAGES, stream: true };
const ASKING = { ...CHAT, stream_options: { include_usage: true } };
const plays = (body: Iterable<string | Uint8Array> | AsyncIterable<Uint8Array>): Script => {
  return () => ({ headers: SSE, body });
};
const counting = (output: number) => ({ usage: { prompt_tokens: 7, completion_tokens: output } });
/** A chunk with a count and without content. */
const counted = (output: number) => `data: ${JSON.stringify({ choices: [], ...counting(output) })}\n\n`;

test('a stream that cannot begin on its connection gets an error, is charged, and its upstream is stopped', async () => {
  const headers = { ...SSE, 'x-request-id': 'a\nb' };
  const script: Script = () => ({ headers, body: stuckAfter(chunk({ content: 'x' })) });
  const { chat, ledger, fake } = stageWorld({ script });
  expect((await chat(CHAT)).status).toBe(500);
  await settleDown();
  expect([ledger.liveReservations(), ledger.settled.length, fake.requests[0]?.signal.aborted]).toEqual([0, 1, true]);
});

describe.each(WAYS)('through %s', (_, room) => {
  const stage = (world: World = {}) => stageWorld({ ...world, room });

  describe('a stream', () => {
    test('reaches the client byte for byte, and its usage is charged', async () => {
      const body = streamed(['Hel', 'lo ', 'wörld']);
      const { chat, ledger, fake, lines } = stage({ script: plays(body) });
      const response = await chat(ASKING);
      expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      expect(await textOf(response)).toBe(body.join(''));
      expect(ledger.settled).toMatchObject([{ cost: 16_000n, estimated: false, tokens: { input: 10, output: 3 } }]);
      expect(lines[0]?.fields).toMatchObject({ status: 200, end: 'complete', stream: true });
      await settleDown();
      expect([ledger.liveReservations(), fake.ended()]).toEqual([0, 1]);
    });

    test('hides the usage chunk from a client that did not request it, and always requests it from the provider', async () => {
      const body = streamed(['Hello']);
      const { chat, fake, ledger } = stage({ script: plays(body) });
      const text = await textOf(await chat({ ...CHAT, stream_options: { other: 1, include_usage: false } }));
      expect(text).toBe(body.filter((event) => event !== USAGE_CHUNK).join(''));
      expect(fake.sent()).toMatchObject({ stream_options: { other: 1, include_usage: true } });
      expect(ledger.settled[0]).toMatchObject({ estimated: false });
    });

    test('shows a usage that arrived with content, and charges the last one', async () => {
      const usage = (output: number) => ({ usage: { prompt_tokens: 7, completion_tokens: output } });
      const body = [
        chunk({ content: 'a' }, usage(1)),
        chunk({ content: 'b' }, usage(2)),
        chunk({}, usage(9), 'stop'),
        DONE,
      ];
      const { chat, ledger } = stage({ script: plays(body) });
      expect(await textOf(await chat(CHAT))).toBe(body.join(''));
      expect(ledger.settled).toMatchObject([{ tokens: { input: 7, output: 9 }, estimated: false }]);
    });

    test('may begin with a chunk without choices and without usage, and contain comments: they pass', async () => {
      const filter = 'data: {"id":"","choices":[],"prompt_filter_results":[],"usage":null}\n\n';
      const body = [': waiting\n\n', filter, ...streamed(['x'])];
      const { chat } = stage({ script: plays(body) });
      expect(await textOf(await chat(ASKING))).toBe(body.join(''));
    });

    test('begins for the client also before its first content', async () => {
      const { chat } = stage({ script: plays(stuckAfter(USAGE_CHUNK)) });
      expect((await chat(CHAT)).status).toBe(200);
    });

    test('sends its last byte only when the settlement is durable', async () => {
      let settle: () => void = () => {};
      const durable = new Promise<void>((resolve) => {
        settle = resolve;
      });
      const world = stage({ script: plays(streamed(['x'])) });
      const settled = world.ledger.settle;
      world.ledger.settle = async (reservation, settlement) => {
        await durable;
        await settled(reservation, settlement);
      };
      const reader = (await world.chat(CHAT)).body?.getReader();
      let text = '';
      const reading = (async () => {
        for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
          text += new TextDecoder().decode(next.value);
        }
        text += '(end)';
      })();
      await settleDown();
      expect(text).toContain('"finish_reason":"stop"');
      expect(text).not.toMatch(/DONE|\(end\)/);
      settle();
      await reading;
      expect(text).toMatch(/\[DONE\]\n\n\(end\)$/);
    });

    test('that cannot be booked ends in an error and never looks whole', async () => {
      const { chat, ledger } = stage({ script: plays(streamed(['x'])) });
      ledger.fail('settle');
      const text = await textOf(await chat(CHAT));
      expect(text).toContain('"code":"ledger_unavailable"');
      expect(text).not.toContain('[DONE]');
    });

    test('reports its cost so far to the ledger', async () => {
      const { chat, ledger } = stage({ script: plays(streamed(['one', 'two', 'three'])) });
      const reader = (await chat(CHAT)).body?.getReader();
      const known: bigint[] = [];
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
        known.push(ledger.progressed[0]?.() ?? -1n);
      }
      expect(ledger.progressed).toHaveLength(1);
      expect(known[0]).toBeGreaterThan(0n);
      // Reading may be a word behind.
      expect(known.slice(0, 4)).toEqual(known.slice(0, 4).sort((a, b) => (a < b ? -1 : 1)));
      expect(new Set(known.slice(0, 4)).size).toBeGreaterThan(2);
    });

    test.each([
      ['in the same packet', [chunk({ content: 'a' }) + chunk({}, {}, 'stop') + DONE + USAGE_CHUNK]],
      ['in the next packet', [chunk({ content: 'a' }), chunk({}, {}, 'stop'), DONE, USAGE_CHUNK]],
      ['in two packets', [chunk({ content: 'a' }), DONE, USAGE_CHUNK.slice(0, 50), USAGE_CHUNK.slice(50)]],
      ['for a second time', [counted(2), chunk({ content: 'a' }), DONE + USAGE_CHUNK]],
      ['before content that nobody sees', [chunk({ content: 'a' }), DONE, USAGE_CHUNK, chunk({ content: 'b' })]],
    ])(
      'that is counted after [DONE], %s, is charged by that count, and the client gets the part before it',
      async (_, body) => {
        const { chat, ledger, lines } = stage({ script: plays(body) });
        const text = body.join('');
        const shown = text.slice(0, text.indexOf(DONE) + DONE.length).replace(counted(2), '');
        expect(await textOf(await chat(CHAT))).toBe(shown);
        expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 10, output: 3 } }]);
        expect(lines[0]?.fields).toMatchObject({ end: 'complete' });
      },
    );

    test('without a count before [DONE] waits for a count no longer than a second', async () => {
      const body = [chunk({ content: 'a' }), chunk({}, {}, 'stop'), DONE];
      const { chat, ledger, clock, fake } = stage({ script: plays(stuckAfter(...body)) });
      const text = textOf(await chat(CHAT));
      await settleDown();
      expect(ledger.settled).toEqual([]);
      await clock.pass(1000);
      expect(await text).toBe(body.join(''));
      expect(ledger.settled).toMatchObject([{ estimated: true }]);
      expect([fake.requests[0]?.signal.aborted, clock.waiting()]).toEqual([true, 0]);
    });

    test('without usage is charged an estimate above zero, at most the reservation, and marked', async () => {
      const body = [chunk({ content: 'Hello there, this is a reply.' }), chunk({}, {}, 'stop'), DONE];
      const { chat, ledger } = stage({ script: plays(body) });
      await textOf(await chat(CHAT));
      const [settled] = ledger.settled;
      expect(settled).toMatchObject({ estimated: true });
      expect(settled?.cost).toBeGreaterThan(0n);
      expect(settled?.cost).toBeLessThanOrEqual(ledger.asked[0]?.amount ?? 0n);
    });

    test('whose events no parser can read is charged for their bytes', async () => {
      const words = streamed(['Hello', 'there', 'again'])
        .slice(0, -1)
        .map((event) => event.trimEnd());
      const { chat, ledger } = stage({ script: plays([`${words.join('\n')}\n`]) });
      expect(await textOf(await chat(CHAT))).toContain('again');
      expect(ledger.settled).toMatchObject([{ estimated: true }]);
      expect(ledger.settled[0]?.tokens.output).toBeGreaterThan(3);
    });

    test('without usage is charged for its bytes, not for its characters', async () => {
      const outputOf = async (content: string) => {
        const { chat, ledger } = stage({ script: plays([chunk({ content }), chunk({}, {}, 'stop'), DONE]) });
        await textOf(await chat(CHAT));
        return ledger.settled[0]?.tokens.output;
      };
      expect(await outputOf('abc'.repeat(50))).toBe(50);
      expect(await outputOf('网关'.repeat(25))).toBe(50);
      // Four bytes each; and two.
      expect(await outputOf('🏦'.repeat(30))).toBe(40);
      expect(await outputOf('é'.repeat(30))).toBe(20);
    });

    test.each([
      ['with the first word', [chunk({ content: 'a' }, counting(0))]],
      ['before the first word', [counted(0)]],
      ['with each word, as zero', [chunk({ content: 'a' }, counting(0)), chunk({ content: 'b' }, counting(0))]],
    ])('that is counted only %s is charged for later content too, however it ends', async (_, first) => {
      const words = Array.from('cdefghij', (content) => chunk({ content }));
      const last = _.startsWith('with each') ? [] : [chunk({}, {}, 'stop'), DONE];
      const { chat, ledger, lines } = stage({ script: plays([...first, ...words, ...last]) });
      await textOf(await chat(CHAT));
      expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { input: 7 } }]);
      expect(ledger.settled[0]?.tokens.output).toBeGreaterThanOrEqual(words.length);
      expect(lines[0]?.fields).toMatchObject({ end: last.length > 0 ? 'complete' : 'broken' });
    });

    test('counted as zero at its end is charged for its content', async () => {
      const body = [chunk({ content: 'a' }), chunk({ content: 'b' }), chunk({}, {}, 'stop'), counted(0), DONE];
      const { chat, ledger } = stage({ script: plays(body) });
      await textOf(await chat(CHAT));
      expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { input: 7, output: 2 } }]);
    });

    test('never costs less after a later count', async () => {
      const body = [chunk({ content: 'a' }), chunk({}, {}, 'stop'), counted(9), counted(1), DONE];
      const { chat, ledger } = stage({ script: plays(body) });
      await textOf(await chat(CHAT));
      expect(ledger.settled).toMatchObject([{ estimated: false, tokens: { input: 7, output: 9 } }]);
    });

    test('whose upstream breaks after an early count is broken', async () => {
      const { chat, ledger, lines } = stage({ script: plays(breaksAfter(counted(0), chunk({ content: 'some' }))) });
      expect(await textOf(await chat(CHAT))).toContain('upstream_error');
      expect(lines[0]?.fields).toMatchObject({ end: 'broken' });
      expect(ledger.settled).toMatchObject([{ tokens: { input: 7, output: 2 } }]);
    });

    test('is charged by a count of more than its content so far', async () => {
      const body = [counted(9), chunk({ content: 'a long word' }), chunk({}, {}, 'stop'), DONE];
      const { chat, ledger } = stage({ script: plays(body) });
      await textOf(await chat(CHAT));
      expect(ledger.settled).toMatchObject([{ tokens: { input: 7, output: 9 }, estimated: false }]);
    });

    test('that ends without [DONE] is whole if its content had ended', async () => {
      const body = [chunk({ content: 'x' }), chunk({}, {}, 'stop')];
      const { chat, lines } = stage({ script: plays(body) });
      expect(await textOf(await chat(CHAT))).toBe(body.join(''));
      expect(lines[0]?.fields).toMatchObject({ end: 'complete' });
    });

    test.each([
      ['breaks', breaksAfter(chunk({ content: 'some' }), chunk({ content: ' words' }))],
      ['just ends', [chunk({ content: 'some' }), chunk({ content: ' words' })]],
    ])(
      'whose upstream %s in the middle ends with an error without [DONE], charged for its content',
      async (_, body) => {
        const { chat, ledger, fake, lines } = stage({ script: plays(body) });
        const text = await textOf(await chat(CHAT));
        const [last] = text.replace(BROKEN_OFF, '').trimEnd().split('\n\n').slice(-1);
        expect(JSON.parse(last?.replace('data: ', '') ?? '')).toEqual({
          error: { message: expect.any(String), type: 'server_error', param: null, code: 'upstream_error' },
        });
        expect(text).not.toContain('[DONE]');
        expect(ledger.settled).toMatchObject([{ estimated: true, tokens: { output: 4 } }]);
        expect(fake.requests).toHaveLength(1);
        expect(lines[0]).toMatchObject({ level: 'warn', fields: { end: 'broken' } });
      },
    );

    test('that lasts too long is ended with an error, and the upstream is stopped', async () => {
      const { chat, ledger, fake, clock, lines } = stage({ script: plays(stuckAfter(chunk({ content: 'x' }))) });
      const text = textOf(await chat(CHAT));
      await settleDown();
      await clock.pass(5000);
      expect(await text).toContain('"code":"upstream_timeout"');
      expect(lines[0]?.fields).toMatchObject({ end: 'timeout' });
      expect([ledger.settled.length, fake.requests[0]?.signal.aborted]).toEqual([1, true]);
    });
  });
});

// Can a provider or a client say anything that makes the translation throw, or count what was not said?
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/runs.ts';
import { anthropic, toMessagesBody } from './anthropic.ts';
import { createReader } from './anthropic-stream.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** JSON in which the names that are read stand in the wrong places, with the wrong values. */
const names = fc.constantFrom(
  'type',
  'role',
  'content',
  'text',
  'message',
  'usage',
  'delta',
  'index',
  'id',
  'name',
  'input',
  'partial_json',
  'thinking',
  'stop_reason',
  'content_block',
  'error',
  'image_url',
  'url',
  'file',
  'file_data',
  'tool_calls',
  'function',
  'arguments',
  'input_tokens',
  'output_tokens',
  'cache_creation',
);
const words = fc.constantFrom(
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
  'text',
  'text_delta',
  'input_json_delta',
  'tool_use',
  'user',
  'assistant',
  'tool',
  'system',
  'end_turn',
  'data:image/png;base64,AA',
  '{"a":1}',
  '__proto__',
);
const { hostile } = fc.letrec<{ hostile: unknown }>((tie) => ({
  hostile: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(words, fc.string(), fc.double(), fc.integer(), fc.boolean(), fc.constant(null)),
    fc.array(tie('hostile'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(names, fc.string()), tie('hostile'), { maxKeys: 6 }),
  ),
}));
const typed = fc
  .tuple(words, hostile)
  .map(([type, value]) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { ...value, type }
      : { type, delta: value, message: value, content_block: value, usage: value, index: 0 },
  );

test('no stream of events throws, ends twice, or yields an event that is no JSON', () => {
  fc.assert(
    fc.property(fc.array(typed, { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), (events, size) => {
      const bytes = encoder.encode(events.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join(''));
      const reader = createReader(1);
      const pieces = [...Array(Math.ceil(bytes.length / size)).keys()].flatMap((at) =>
        reader.push(bytes.subarray(at * size, (at + 1) * size)),
      );
      const all = [...pieces, ...reader.end()];
      expect(all.filter(({ done }) => done).length).toBeLessThanOrEqual(1);
      for (const { bytes: shown, deltas, outputBytes } of all) {
        expect(deltas > 0).toBe(outputBytes > 0);
        for (const line of decoder
          .decode(shown)
          .split('\n')
          .filter((one) => one.startsWith('data: {')))
          JSON.parse(line.slice(6));
      }
    }),
    { numRuns: runs(400) },
  );
});

test('no reply throws, and what is no message is told apart', () => {
  fc.assert(
    fc.property(hostile, (body) => {
      const reply = anthropic.readReply(encoder.encode(JSON.stringify(body)), 1);
      anthropic.readError(encoder.encode(JSON.stringify(body)));
      if (reply !== undefined) expect(JSON.parse(`${reply.body}`)).toMatchObject({ object: 'chat.completion' });
    }),
    { numRuns: runs(400) },
  );
});

test('no request throws: it is translated, or refused with the place that is wrong', () => {
  fc.assert(
    fc.property(fc.array(hostile), hostile, (messages, more) => {
      const request = { ...Object(more), messages };
      const body = toMessagesBody(request, { model: 'm', maxTokens: 1, stream: false });
      if (body.ok) expect(JSON.parse(JSON.stringify(body.value))).toMatchObject({ model: 'm', max_tokens: 1 });
      else
        expect(body.failure).toMatchObject({
          code: 'invalid_request',
          param: expect.stringMatching(/^messages\[\d+\]/),
        });
    }),
    { numRuns: runs(400) },
  );
});

// Hostile input for the translation to Anthropic: it never throws, and never counts content that is not there.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../../test/support/runs.ts';
import { anthropic, toMessagesBody } from '../../../wire/chat/anthropic.ts';
import { createReader } from '../../../wire/chat/anthropic-stream.ts';
import { hostile, hostileEvent } from '../hostile.fixture.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

test('no stream of events throws, ends twice, or yields an event that is no JSON', () => {
  fc.assert(
    fc.property(fc.array(hostileEvent, { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), (events, size) => {
      const bytes = encoder.encode(events.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join(''));
      const reader = createReader({ created: 1, redact: String });
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

test('no reply throws, and a body that is no message is no reply', () => {
  fc.assert(
    fc.property(hostile, (body) => {
      const reply = anthropic.readReply(encoder.encode(JSON.stringify(body)), { created: 1, redact: String });
      anthropic.readError(encoder.encode(JSON.stringify(body)));
      if (reply !== undefined) expect(JSON.parse(`${reply.body}`)).toMatchObject({ object: 'chat.completion' });
    }),
    { numRuns: runs(400) },
  );
});

test('no request throws: it is translated, or refused with the wrong member', () => {
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

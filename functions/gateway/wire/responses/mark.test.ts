import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/runs.ts';
import { mark, unmark } from './mark.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const by = '0123abcd';

/** Texts that look like members with marks, and other texts. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom(
    '"encrypted_content":"a"',
    '"previous_response_id": "b.gw0123abcd"',
    'a.gw0123abcd',
    '\\"',
    'encrypted_content',
  ),
);
const token = fc.stringMatching(/^[A-Za-z0-9_=-]{1,20}$/);

test('what a client sends back is what the provider sent, and texts that look like marks stay', () => {
  fc.assert(
    fc.property(token, token, text, text, (id, encrypted_content, said, name) => {
      const reply = {
        id,
        output: [
          { type: 'reasoning', encrypted_content },
          { type: 'message', text: said },
        ],
      };
      const marked = JSON.parse(decoder.decode(mark(encoder.encode(JSON.stringify(reply)), id, by)));
      expect([marked.id, marked.output[0].encrypted_content]).toEqual([
        `${id}.gw${by}`,
        `${encrypted_content}.gw${by}`,
      ]);
      const asked = { previous_response_id: id, input: [reply.output[0], { content: said }], [`x${name}`]: said };
      const sent = { ...asked, previous_response_id: marked.id, input: [marked.output[0], { content: said }] };
      expect(unmark(JSON.stringify(sent))).toMatchObject({ by });
      expect(decoder.decode(unmark(JSON.stringify(sent))?.bytes)).toBe(JSON.stringify(asked));
    }),
    { numRuns: runs(500) },
  );
});

test('a body without marks is left alone', () => {
  expect(unmark('{"previous_response_id":"resp_1","input":"resp_1.gw0123abcd"}')).toBeUndefined();
  const bytes = encoder.encode('{"delta":"resp_1"}');
  expect(mark(bytes, undefined, by)).toBe(bytes);
});

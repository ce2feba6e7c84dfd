import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/runs.ts';
import { membersOf } from '../json-splice.ts';
import { mark, unmark } from './mark.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const by = '0123abcd';
const unmarked = (body: string) => unmark({ text: body, object: membersOf(body) });

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
      expect(unmarked(JSON.stringify(sent))).toMatchObject({ by });
      expect(decoder.decode(unmarked(JSON.stringify(sent))?.bytes)).toBe(JSON.stringify(asked));
    }),
    { numRuns: runs(500) },
  );
});

test('a body without marks is left alone', () => {
  expect(unmarked('{"previous_response_id":"resp_1","input":"resp_1.gw0123abcd"}')).toBeUndefined();
  const bytes = encoder.encode('{"delta":"resp_1"}');
  expect(mark(bytes, undefined, by)).toBe(bytes);
});

test.each([
  '{"metadata":{"encrypted_content":"a.gw0123abcd"}}',
  '{"tools":[{"parameters":{"default":{"previous_response_id":"a.gw0123abcd"}}}]}',
  '{"input":[{"content":[{"encrypted_content":"a.gw0123abcd"}],"previous_response_id":"b.gw0123abcd"}]}',
  '{"encrypted_content":"a.gw0123abcd","previous_response_id":".gw0123abcd"}',
])("what is the client's own stays: %s", (body) => {
  expect(unmarked(body)).toBeUndefined();
});

test.each([
  ['{"previous\\u005fresponse_id":"a.gw0123abcd"}', '{"previous\\u005fresponse_id":"a"}'],
  ['{"input":[{"encrypted_content":"a\\u002egw0123abcd"}],"n":1}', '{"input":[{"encrypted_content":"a"}],"n":1}'],
  ['{"input":[1,{"\\u0065ncrypted_content":"\\/.gw\\u0030123abcd"}]}', '{"input":[1,{"\\u0065ncrypted_content":"/"}]}'],
])('a mark is taken out however its letters are escaped: %s', (body, sent) => {
  expect(unmarked(body)).toMatchObject({ by });
  expect(decoder.decode(unmarked(body)?.bytes)).toBe(sent);
});

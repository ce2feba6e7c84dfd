import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../../test/support/runs.ts';
import { membersOf } from '../../../wire/json/json-splice.ts';
import { mark, unmark } from '../../../wire/responses/marks.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const by = '0123abcd';
const mac = 'f'.repeat(32);
const markId = (id: string) => `${id}.gw${by}${mac}`;
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

test('ids and reasoning that a client sends back are those of the provider, and texts that look like marks stay', () => {
  fc.assert(
    fc.property(token, token, token, text, text, (id, rest, encrypted_content, note, name) => {
      const item = `${id}_${rest}`;
      const output = [
        { type: 'reasoning', id: item, encrypted_content },
        { type: 'message', id: `${item}2`, text: note },
      ];
      const reply = { id, output, previous_response_id: null, metadata: { note: note } };
      const marked = JSON.parse(
        decoder.decode(
          mark(encoder.encode(JSON.stringify(reply)), { response: reply }, { modelEntryMark: by, markId }),
        ),
      );
      expect(marked).toEqual({
        ...reply,
        id: markId(id),
        output: [
          { ...output[0], id: markId(item), encrypted_content: `${encrypted_content}.gw${by}` },
          { ...output[1], id: markId(`${item}2`) },
        ],
      });
      const asked = { previous_response_id: id, input: [output[0], { content: note }], [`x${name}`]: note };
      const sent = { ...asked, previous_response_id: marked.id, input: [marked.output[0], { content: note }] };
      const found = unmarked(JSON.stringify(sent));
      expect(decoder.decode(found?.bytes)).toBe(JSON.stringify(asked));
      expect(found).toMatchObject({
        modelEntryMark: by,
        ids: [
          { id, modelEntryMark: by, mac, param: 'previous_response_id' },
          { id: item, param: 'input' },
        ],
      });
    }),
    { numRuns: runs(500) },
  );
});

test('ids that a reply only mentions are not marked, and without a mark for ids none is', () => {
  const reply = { id: 'resp_1', metadata: { id: 'a' }, output: [{ id: 'msg_1', annotations: [{ id: 'b' }] }] };
  const bytes = encoder.encode(JSON.stringify(reply));
  const marked = decoder.decode(mark(bytes, { response: reply }, { modelEntryMark: undefined, markId }));
  expect(marked).toContain('"metadata":{"id":"a"}');
  expect(marked).toContain('"annotations":[{"id":"b"}]');
  expect(mark(bytes, { response: reply }, { modelEntryMark: by, markId: undefined })).toBe(bytes);
});

test('a body without marks stays unchanged', () => {
  expect(unmarked('{"previous_response_id":"resp_1","input":"resp_1.gw0123abcd"}')).toBeUndefined();
  const bytes = encoder.encode('{"delta":"resp_1"}');
  expect(mark(bytes, new Set(['resp_1']), { modelEntryMark: by, markId })).toBe(bytes);
});

test.each([
  '{"metadata":{"encrypted_content":"a.gw0123abcd"}}',
  '{"tools":[{"parameters":{"default":{"previous_response_id":"a.gw0123abcd"}}}]}',
  '{"input":[{"content":[{"encrypted_content":"a.gw0123abcd"}],"previous_response_id":"b.gw0123abcd"}]}',
  '{"encrypted_content":"a.gw0123abcd","previous_response_id":".gw0123abcd"}',
  '{"previous_response_id":"a.gw0123abcd","input":[{"id":"b.gw0123abcd"},{"id":".gw0123abcdffffffffffffffffffffffffffffffff"}]}',
])('a member of the client stays: %s', (body) => {
  expect(unmarked(body)).toBeUndefined();
});

test.each([
  [`{"previous\\u005fresponse_id":"${markId('a')}"}`, '{"previous\\u005fresponse_id":"a"}'],
  ['{"input":[{"encrypted_content":"a\\u002egw0123abcd"}],"n":1}', '{"input":[{"encrypted_content":"a"}],"n":1}'],
  ['{"input":[1,{"\\u0065ncrypted_content":"\\/.gw\\u0030123abcd"}]}', '{"input":[1,{"\\u0065ncrypted_content":"/"}]}'],
])('a mark is removed however its letters are escaped: %s', (body, sent) => {
  expect(unmarked(body)).toMatchObject({ modelEntryMark: by });
  expect(decoder.decode(unmarked(body)?.bytes)).toBe(sent);
});

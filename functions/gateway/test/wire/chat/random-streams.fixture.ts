// Random streams of OpenAI's dialect in random packets: events that providers send, and events that none should.
import * as fc from 'fast-check';

/** Texts of models, some of which look like other parts of a stream. */
const content = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.string({ unit: fc.constantFrom('a', '"', '\\', 'é', '漢', '😀', '\u2028', '\n', '\u0000', '\ud800', '/') }),
  fc.constantFrom(
    '',
    '"usage":{"prompt_tokens":1}',
    '[DONE]',
    'data: [DONE]\n\n',
    '"error":',
    '"finish_reason":"stop"',
  ),
);
/** JSON of a text, as different providers write it. */
const text = fc.tuple(content, fc.constantFrom('short', 'ascii', 'solidus')).map(([value, how]) => {
  const json = JSON.stringify(value);
  if (how === 'solidus') return json.replaceAll('/', '\\/');
  const toEscape = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return how === 'ascii' ? json.replaceAll(/[^\x20-\x7e]/g, toEscape) : json;
});
/** Now and then a text that no JSON allows. */
const anyText = fc.oneof(
  { weight: 20, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom('"\\x"', '"\\u12g4"', '"\t"', '"\\u00', '5', 'null', '["a"]', '{"a":"b"}') },
);

/** Values in place of a number: each stream has its own, and some are not numbers. */
const number = fc.oneof(
  { weight: 6, arbitrary: fc.nat().map(String) },
  fc.constantFrom(
    '0',
    '00',
    '01',
    '-1',
    '1.5',
    '1e3',
    '1.',
    '',
    '"1"',
    'null',
    '{"prompt_tokens":7,"completion_tokens":3}',
  ),
);

/** Kinds of events. Events of one kind differ only in their texts (`T`) and in a number (`§`). */
const KINDS = [
  '{"id":T,"object":"chat.completion.chunk","created":§,"model":T,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"id":T,"created":§,"model":T,"service_tier":T,"choices":[{"index":0,"delta":{"role":T,"content":T,"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}',
  '{"id":T,"created":§,"choices":[{"index":0,"delta":{},"finish_reason":T}]}',
  '{"id":T,"created":§,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":T,"type":"function","function":{"name":T,"arguments":T,"more":T}}]},"finish_reason":null}]}',
  '{"id":T,"created":§,"created":§,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"created":§,"choices":[{"index":0,"delta":{"content":T},"finish_reason":null}],"usage":§}',
  '{"created":§,"usage":§,"choices":[{"index":§,"delta":{"content":T},"finish_reason":null}]}',
  '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":T},"finish_reason":null}]}',
  '{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":T},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":T}',
  '{"choices":[{"delta":{"content":T}}],"p":T}',
  '{ "id": T, "choices": [ {"index": 0, "delta": {"content": T}, "finish_reason": null} ] }',
  '{"id":"c","choices":[{"index": 1, "delta": {"reasoning_content" : T, "content":null}, "finish_reason": null}], "usage":null }',
  '{"choices":[{"index":0,"delta":{"content":T,"reasoning":T,"refusal":T,"other":T},"finish_reason":null}],"error":null}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":T,"type":"function","function":{"name":T,"arguments":T}}]}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":T}},{"index":1,"function":{"arguments":T}}]}}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":{"function":{"arguments":T}}}}]}',
  '{"choices":[{"index":0,"delta":{"function_call":{"name":T,"arguments":"fixed"},"content":T}}]}',
  '{"choices":[{"index":0,"delta":[{"content":T}]}]}',
  '{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":T}]}]},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"audio":{"id":T,"data":"AAAA","transcript":T}},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"n","input":T},"input":T}]},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":T,"input":T}}]},"finish_reason":null}]}',
  '{"choices":{"index":0,"delta":{"content":T}}}',
  '{"choices":[{"index":0,"delta":{"content":T}},{"index":1,"delta":{"content":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T,"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T,"cont\\u0065nt":T}}]}',
  '{"choices":[{"index":0,"delta":{"cont\\u0065nt":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T},"delta":{"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"choices":[{"index":0,"delta":{"content":T}}]}',
  '{"choices":[{"index":0,"delta":{"content":T},"finish_reason":T}]}',
  '{"choices":[{"index":T,"delta":{"content":T},"finish_reason":null}]}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"usage":T,"x_groq":T}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"error":T}',
  '{"choices":[{"index":0,"delta":{"content":T}}],"us\\u0061ge":{"prompt_tokens":7,"completion_tokens":3}}',
  '{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3},"id":T}',
  '{"choices":[],"usage":null,"prompt_filter_results":T}',
  '{"choices":[],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}},"id":T}',
  '{"error":{"message":T}}',
  '{"choices":[{"index":0,"delta":{"content":T}}]',
  '[{"choices":[{"delta":{"content":T}}]}]',
  '[DONE]',
  ' [DONE] ',
];
const texts = fc.array(anyText, { minLength: 6, maxLength: 6 });
const filled = (pattern: string) =>
  fc.tuple(texts, number).map(([six, one]) =>
    six.reduce(
      (json, text) => json.replace('T', () => text.replaceAll('T', 't')),
      pattern.replaceAll('§', () => one),
    ),
  );
const frame = fc.oneof(
  { weight: 12, arbitrary: fc.constant((json: string, end: string) => `data: ${json}${end}${end}`) },
  fc.constantFrom(
    (json: string, end: string) => `data:${json}${end}${end}`,
    (json: string, end: string) => `data:   ${json} ${end}${end}`,
    (json: string, end: string) => `: comment${end}data: ${json}${end}${end}`,
    (json: string, end: string) => `data: ${json}${end}id: 5${end}${end}`,
    (json: string, end: string) => `event: chunk${end}data: ${json}${end}${end}`,
    (json: string, end: string) => `data: ${json.replace(',', `,${end}data: `)}${end}${end}`,
    (json: string, end: string) => `data: ${json}${end}${end}${end}`,
    (json: string, end: string) => `\ufeffdata: ${json}${end}${end}`,
    (_: string, end: string) => `: waiting${end}${end}`,
  ),
);
const lineEnd = fc.oneof(
  { weight: 6, arbitrary: fc.constant('\n') },
  { weight: 3, arbitrary: fc.constant('\r\n') },
  { weight: 1, arbitrary: fc.constant('\r') },
);
/** Few kinds in a stream, mostly written and ended in the same way. */
export const randomStream = fc
  .tuple(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 3 }), lineEnd)
  .chain(([kinds, end]) => {
    const event = fc.tuple(
      fc.constantFrom(...kinds).chain(filled),
      frame,
      fc.oneof({ weight: 12, arbitrary: fc.constant(end) }, lineEnd),
    );
    return fc.array(event, { maxLength: 12 });
  })
  .map((events) => events.map(([json, framed, end]) => framed(json, end)).join(''));
export const randomByteErrors = fc.array(
  fc.tuple(fc.nat(), fc.constantFrom(0xff, 0xc3, 0xe6, 0xf0, 0x80, 0x22, 0x5c)),
  {
    maxLength: 2,
  },
);
/** The ends of packets: after a number of bytes, or after a number of line ends. */
export const packetSizes = fc.oneof(
  fc.record({
    by: fc.constant('bytes'),
    sizes: fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 30 }),
  }),
  fc.record({
    by: fc.constant('lines'),
    sizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 9 }),
  }),
  fc.constant({ by: 'bytes', sizes: [100_000] }),
);

export function packetsOf(
  bytes: Uint8Array,
  { by, sizes }: { by: string; sizes: ReadonlyArray<number> },
): Uint8Array[] {
  const packets: Uint8Array[] = [];
  let start = 0;
  let left = sizes[0] ?? 1;
  for (let at = 0; at < bytes.length; at += 1) {
    if (by === 'bytes' || bytes[at] === 0x0a || bytes[at] === 0x0d) left -= 1;
    if (left > 0) continue;
    packets.push(bytes.slice(start, at + 1));
    start = at + 1;
    left = sizes[packets.length % sizes.length] ?? 1;
  }
  return [...packets, bytes.slice(start)];
}

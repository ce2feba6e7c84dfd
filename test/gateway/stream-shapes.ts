// Shapes of long replies: what a provider of each API may send much of, as plain replies and as streams, and the
// packets they come in.
import { COUNT, event, message, START, STOP, words } from './anthropic.ts';
import { list, nested } from './request-shapes.ts';
import { ADDED, COMPLETED, CREATED, deltas, response } from './responses.ts';
import { chunk, completion, DONE, embedded, USAGE_CHUNK } from './upstream.ts';

type SizedShape<T> = (size: number) => T;

/** What a provider may send much of. */
export interface Replies {
  /** Whole replies as JSON. */
  readonly plain: Readonly<Record<string, SizedShape<string>>>;
  /** Events of streams. */
  readonly events: Readonly<Record<string, SizedShape<ReadonlyArray<string>>>>;
  /** Events of a stream that opens much, and then exceeds any limit of its request. */
  readonly open?: SizedShape<ReadonlyArray<string>>;
}

/** Words beyond the limit of a small request. */
const TOO_MANY = 500;
const NO_USAGE = { usage: undefined };
const call = (index: number, json = '{}') => ({ index, id: `c${index}`, function: { name: 'f', arguments: json } });
const block = (index: number) => event('content_block_start', { index, content_block: { type: 'text', text: '' } });
const item = (index: number) =>
  event('response.output_item.added', { output_index: index, item: { id: `i${index}`, type: 'message', content: [] } });

/** So long that also few of them are more than the gateway keeps unread. */
const LONG_WORD = 'w'.repeat(1000);

export const REPLIES = {
  chat: {
    plain: {
      'one long text': (size) => completion('é'.repeat(size * 20)),
      'one long text without a count': (size) => completion('é'.repeat(size * 20), undefined),
      'answers without a count': (size) =>
        JSON.stringify({ choices: list(size, (index) => ({ index, message: { content: 'a' } })) }),
      'calls without a count': (size) =>
        JSON.stringify({ choices: [{ message: { tool_calls: list(size, (at) => call(at)) } }] }),
      'parts in parts without a count': (size) =>
        `{"choices":[{"message":{"content":${nested(size * 20, '[', ']')}}}]}`,
      'arguments in arguments': (size) =>
        JSON.stringify({ choices: [{ message: { tool_calls: [call(0, nested(size * 20, '{"a":', '}', '1'))] } }] }),
      'values in arguments': (size) =>
        JSON.stringify({
          choices: [{ message: { tool_calls: [call(0, JSON.stringify({ a: list(size * 20, () => ({ b: 1 })) }))] } }],
        }),
    },
    events: {
      words: (size) => [...list(size, () => chunk({ content: LONG_WORD })), chunk({}, {}, 'stop'), USAGE_CHUNK, DONE],
      'words without a count': (size) => [
        ...list(size, (at) => chunk({ content: `w${at} ` })),
        chunk({}, {}, 'stop'),
        DONE,
      ],
      'words with a count each': (size) => [
        ...list(size, (at) => chunk({ content: 'w ' }, { usage: { prompt_tokens: 9, completion_tokens: at } })),
        DONE,
      ],
      'answers that never end': (size) =>
        list(size, (index) => `data: ${JSON.stringify({ choices: [{ index, delta: { content: 'a' } }] })}\n\n`),
      'calls that never end': (size) => list(size, (at) => chunk({ tool_calls: [call(at, '')] })),
      'one call in pieces': (size) => list(size, () => chunk({ tool_calls: [call(0, ' ')] })),
      'calls of one event': (size) => [
        chunk({ tool_calls: list(size, (at) => call(at)) }),
        chunk({}, {}, 'stop'),
        DONE,
      ],
      'answers of one event': (size) => [
        `data: ${JSON.stringify({ choices: list(size, (index) => ({ index, delta: { content: 'a' } })) })}\n\n`,
      ],
      'events without a meaning': (size) => list(size, () => 'data: {}\n\n'),
      'events that are no JSON': (size) => list(size, () => 'data: {\n\n'),
    },
    open: (size) => [
      ...list(size, (index) => `data: ${JSON.stringify({ choices: [{ index, delta: {} }] })}\n\n`),
      ...list(TOO_MANY, () => chunk({ content: 'w' })),
    ],
  },
  messages: {
    plain: {
      'one long text': (size) => message('é'.repeat(size * 20)),
      'one long text without a count': (size) => message('é'.repeat(size * 20), NO_USAGE),
      'blocks without a count': (size) =>
        message('', { ...NO_USAGE, content: list(size, () => ({ type: 'text', text: 'a' })) }),
      'calls without a count': (size) =>
        message('', {
          ...NO_USAGE,
          content: list(size, (at) => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} })),
        }),
      'iterations of a count': (size) =>
        message('', { usage: { iterations: list(size, () => ({ input_tokens: 1, output_tokens: 1 })) } }),
      'input in input': (size) =>
        message('', { ...NO_USAGE, content: [{ type: 'tool_use', id: 'c', name: 'f', input: 0 }] }).replace(
          '"input":0',
          `"input":${nested(size * 20, '{"a":', '}', '1')}`,
        ),
    },
    events: {
      words: (size) => [START, block(0), ...list(size, () => words('w ')[0] ?? ''), COUNT, STOP],
      'words without a count': (size) => [START, block(0), ...list(size, () => words('w ')[0] ?? '')],
      'words with a count each': (size) => [
        START,
        ...list(size, (at) => event('message_delta', { delta: {}, usage: { output_tokens: at } })),
      ],
      'blocks that never end': (size) => [START, ...list(size, block)],
      'calls that never end': (size) => [
        START,
        ...list(size, (index) =>
          event('content_block_start', { index, content_block: { type: 'tool_use', name: 'f' } }),
        ),
      ],
      'blocks that end': (size) => [
        START,
        ...list(size, (index) => block(index) + event('content_block_stop', { index })),
        STOP,
      ],
      'signs of life': (size) => list(size, () => event('ping')),
      'events without a meaning': (size) => list(size, () => event('new')),
      'events that are no JSON': (size) => list(size, () => 'event: x\ndata: {\n\n'),
    },
    open: (size) => [START, ...list(size, block), ...list(TOO_MANY, () => words('w ')[0] ?? '')],
  },
  responses: {
    plain: {
      'one long text': (size) => response('é'.repeat(size * 20)),
      'one long text without a count': (size) => response('é'.repeat(size * 20), NO_USAGE),
      'items without a count': (size) =>
        response('', { ...NO_USAGE, output: list(size, () => ({ type: 'message', content: [{ text: 'a' }] })) }),
      'encrypted reasoning': (size) =>
        response('', { output: list(size, (at) => ({ type: 'reasoning', encrypted_content: `e${at}` })) }),
      'parts in parts without a count': (size) => `{"id":"r","output":[${nested(size * 20, '{"content":[', ']}')}]}`,
      'ids that repeat': (size) => response('', { id: 'i', more: list(size, () => 'i') }),
      'an error of many words': (size) => response('', { error: { message: 'value-of-'.repeat(size) } }),
    },
    events: {
      words: (size) => [CREATED, ADDED, ...deltas(...list(size, () => 'w ')), COMPLETED],
      'words without a count': (size) => [CREATED, ADDED, ...deltas(...list(size, () => 'w '))],
      'items that never end': (size) => [CREATED, ...list(size, item)],
      'items that end': (size) => [
        CREATED,
        ...list(size, (at) => event('response.output_item.done', { output_index: at, item: { type: 'message' } })),
      ],
      'parts that never end': (size) => [
        CREATED,
        ADDED,
        ...list(size, (at) => event('response.output_text.delta', { output_index: 0, content_index: at, delta: 'w' })),
      ],
      'encrypted reasoning': (size) => [
        event('response.output_item.done', {
          item: { type: 'reasoning', summary: list(size, (at) => ({ encrypted_content: `e${at}` })) },
        }),
      ],
      'an end of many items': (size) => [
        CREATED,
        event('response.completed', {
          response: { output: list(size, () => ({ type: 'message', content: [{ text: 'a' }] })) },
        }),
      ],
      'events without a meaning': (size) => list(size, () => event('new')),
      'events that are no JSON': (size) => list(size, () => 'event: x\ndata: {\n\n'),
    },
    open: (size) => [CREATED, ...list(size, item), ...deltas(...list(TOO_MANY, () => 'w'))],
  },
  embeddings: {
    plain: {
      embeddings: (size) => embedded(5).replace('"data":[', `"data":[${'{"embedding":[0.5]},'.repeat(size)}`),
    },
    events: {},
  },
} as const satisfies Readonly<Record<string, Replies>>;

/** Events of any stream. */
export const EVENTS_ANYWHERE: Readonly<Record<string, SizedShape<ReadonlyArray<string>>>> = {
  comments: (size) => list(size, () => ': c\n\n'),
  'lines of one event': (size) => [`${'data: {}\n'.repeat(size)}\n`],
  'blank lines': (size) => list(size, () => '\n\n'),
  'lines that end in carriage returns': (size) => [...list(size, () => ': c\r\r'), '\r'],
  'an event without an end': (size) => list(size, () => 'data: '),
  'a long event': (size) => [`data: {"m":"${'x'.repeat(size * 20)}"}\n\n`],
  'a long event of escapes': (size) => [`data: {"m":"${'\\u0061'.repeat(size * 4)}"}\n\n`],
};

/** Packets in which the bytes of events come. */
interface Packets {
  readonly name: string;
  readonly of: (events: ReadonlyArray<Uint8Array>) => ReadonlyArray<Uint8Array>;
}

export const IN_ONE: Packets = { name: 'one packet', of: (events) => [Buffer.concat(events)] };
export const IN_SEVENS: Packets = {
  name: 'packets of seven bytes',
  of: (events) => inPackets(Buffer.concat(events), 7),
};
export const PACKETS: ReadonlyArray<Packets> = [IN_ONE, { name: 'a packet each', of: (events) => events }, IN_SEVENS];

function inPackets(bytes: Uint8Array, size: number): ReadonlyArray<Uint8Array> {
  return list(Math.ceil(bytes.length / size), (at) => bytes.subarray(at * size, (at + 1) * size));
}

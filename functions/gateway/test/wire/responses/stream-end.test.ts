// The end of a streamed response: it keeps a bounded part of the response, and repeats short responses whole.
import { describe, expect, test } from 'vitest';
import { toJson } from '#core/json/json.ts';
import { memory } from '../../../../../test/gateway/memory.ts';
import { EMPTY_PIECE, type EndWriter } from '../../../wire/codec.ts';
import { createEndWriter } from '../../../wire/responses/stream-end.ts';

const TOKENS = { input: 1, output: 2, cachedInput: 0, cacheWrite: 0 };
/** Bytes that the end of one stream may keep: a character that is not Latin takes two. */
const MAX = 256 * 1024;
const LETTERS = { Latin: 'w', Greek: 'ω' };

const decoder = new TextDecoder();
const note = (end: EndWriter, type: string, more: object) => end.record({ ...EMPTY_PIECE, event: { type, ...more } });
const added = (index: number) => ({ output_index: index, item: { id: `i${index}`, type: 'message', content: [] } });
const eventsOf = (cut: ReadonlyArray<Uint8Array>) =>
  cut.map((bytes) => JSON.parse(decoder.decode(bytes).split('data: ')[1] ?? ''));

/** Output of this number of characters. */
const OUTPUTS: Readonly<Record<string, (end: EndWriter, size: number, letter: string) => void>> = {
  'one text': (end, size, letter) => {
    note(end, 'response.output_item.added', added(0));
    for (let at = 0; at < size; at += 1)
      note(end, 'response.output_text.delta', { output_index: 0, content_index: 0, delta: letter });
  },
  'whole items': (end, size, letter) => {
    for (let at = 0; at < size / 1000; at += 1)
      note(end, 'response.output_item.done', { output_index: at, item: { text: letter.repeat(1000), of: [{}, {}] } });
  },
  'items without text': (end, size) => {
    for (let at = 0; at < size; at += 1) note(end, 'response.output_item.added', added(at));
  },
  'parts without text': (end, size) => {
    for (let at = 0; at < size; at += 1)
      note(end, 'response.output_text.delta', { output_index: 0, content_index: at, delta: '' });
  },
};

describe.each(Object.keys(LETTERS) as Array<keyof typeof LETTERS>)('in %s letters,', (name) => {
  test.each(Object.entries(OUTPUTS))('%s without end are not kept', async (_, write) => {
    // So many that what the test runner keeps meanwhile does not count.
    const ends = Array.from({ length: 16 }, createEndWriter);
    const before = await memory();
    for (const end of ends) write(end, 100_000, LETTERS[name]);
    expect(((await memory()) - before) / ends.length).toBeLessThan(MAX / 8);
    expect(eventsOf(ends[0]?.toCutEvents([], TOKENS) ?? [])).toMatchObject([
      { type: 'response.incomplete', response: { output: [], usage: { output_tokens: 2 } } },
    ]);
  });

  test.each(Object.entries(OUTPUTS).slice(0, 2))('%s as long as may be are kept small', async (_, write) => {
    const ends = Array.from({ length: 4 }, createEndWriter);
    const before = await memory();
    for (const end of ends) write(end, 50_000, LETTERS[name]);
    expect(((await memory()) - before) / ends.length).toBeLessThan(MAX);
    const { response } = eventsOf(ends[0]?.toCutEvents([], TOKENS) ?? []).at(-1) ?? {};
    expect(JSON.stringify(response.output).match(new RegExp(LETTERS[name], 'g'))?.length).toBeGreaterThanOrEqual(
      50_000,
    );
  });
});

test('the end of a response has its short members, without the parts that repeat the request', () => {
  const end = createEndWriter();
  const short = { id: 'r', model: 'm', created_at: 1, store: false, error: null, output: [] };
  const long = { instructions: 'x'.repeat(1000), tools: [{}], input: ['x'], metadata: { a: 1 } };
  note(end, 'response.created', { response: { ...short, ...long } });
  const [event] = eventsOf([end.toFailureEvent({ code: 'upstream_error' })]);
  expect(event.response).toEqual({
    ...short,
    status: 'failed',
    error: { code: 'server_error', message: expect.any(String) },
  });
});

test('a failed response reaches the client whole', () => {
  const end = createEndWriter();
  const response = { id: 'r', usage: { input_tokens: 1 }, tools: [{ type: 'function' }] };
  const error = { message: 'no', param: undefined, type: undefined, code: 'invalid_prompt' };
  const [event] = eventsOf([end.toErrorEvent(error, { type: 'response.failed', response })]);
  expect(event.response).toMatchObject({ ...response, status: 'failed', error: { code: 'invalid_prompt' } });
});

test('a failed response that is nested too deeply to be written has its short members', () => {
  expect(failedResponse(100_000)).toEqual(SHORT);
});

test('a failed response at the limit of what the stack can write is passed or shortened, and is no error', () => {
  let [written, tooDeep] = [1, 100_000];
  while (tooDeep - written > 1) {
    const depth = Math.floor((written + tooDeep) / 2);
    if (toJson(nested(depth)) === undefined) tooDeep = depth;
    else written = depth;
  }
  for (let depth = written - 20; depth < tooDeep + 20; depth += 1) expect(failedResponse(depth)).toMatchObject(SHORT);
});

const SHORT = { id: 'r', status: 'failed', error: { code: 'invalid_prompt', message: 'no' } };

function nested(levels: number): unknown[] {
  let list: unknown[] = [];
  for (let level = 0; level < levels; level += 1) list = [list];
  return list;
}

/** The response in the event for a client, if a response failed whose tools have this number of levels. */
function failedResponse(levels: number): object {
  const end = createEndWriter();
  const error = { message: 'no', param: undefined, type: undefined, code: 'invalid_prompt' };
  const response = { id: 'r', tools: nested(levels) };
  const event = decoder.decode(end.toErrorEvent(error, { type: 'response.failed', response })).split('data: ')[1] ?? '';
  // A response that was passed whole may be nested too deeply to be read.
  const { tools: _, ...short } = JSON.parse(event.replace(/"tools":\[+\]+,/, '')).response;
  return short;
}

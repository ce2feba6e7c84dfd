// Shapes of large requests: bodies of every route that grow in one place each.
export { piecesOf } from '../../infra/adapters/upstream/body.ts';

import type { ApiName } from '#core/models/providers.ts';
import { modelEntryMarkOf } from '../../functions/gateway/targets/affinity.ts';
import { entry } from './instance.ts';
import { markedId } from './responses.ts';

/** A body with so many elements of one kind, as JSON. */
export interface Shape {
  readonly name: string;
  readonly body: (size: number) => string;
  /** It grows in what the route reads, not in what any body may have. */
  readonly isOwn: boolean;
}

export const list = <T>(size: number, of: (index: number) => T): T[] => Array.from({ length: size }, (_, at) => of(at));
export const nested = (depth: number, open: string, close: string, inner = '') =>
  open.repeat(depth) + inner + close.repeat(depth);

/** A member with a value in JSON. */
type SizedText = (size: number) => string;

const of = (value: (size: number) => unknown): SizedText => {
  return (size) => JSON.stringify(value(size)).slice(1, -1);
};
const many = (value: (index: number) => unknown, name: string): SizedText =>
  of((size) => ({ [name]: list(size, value) }));

const user = (content: unknown) => ({ role: 'user', content });
const text = (index: number) => ({ type: 'text', text: `t${index}` });
const IMAGE = 'data:image/png;base64,AAAA';
const called = (index: number) => ({
  id: `c${index}`,
  type: 'function',
  function: { name: 'f', arguments: '{"a":1}' },
});
/** An object with a list of so many small objects, as the text that arguments are. */
const objects = (size: number) => JSON.stringify({ a: list(size, (at) => ({ b: at })) });
const answer = (more: object) => ({ role: 'assistant', content: 'a', ...more });
const declared = (index: number) => ({
  type: 'function',
  function: { name: `f${index}`, parameters: { type: 'object' } },
});
const cached = { cache_control: { type: 'ephemeral' } };

const MARK = modelEntryMarkOf(entry('gpt'));
/** Deeper ones are refused. */
const MAX_DEPTH = 1000;

/** What a client of each API may send much of. Each replaces the member of that name in the smallest body. */
const OWN: Readonly<Record<ApiName, Readonly<Record<string, SizedText>>>> = {
  chat: {
    'neighbours of one role': many((at) => user(`m${at}`), 'messages'),
    'roles in turn': many((at) => (at % 2 === 0 ? user('q') : answer({})), 'messages'),
    'results of tools': many((at) => ({ role: 'tool', tool_call_id: `c${at}`, content: 'r' }), 'messages'),
    'calls and their results': many(
      (at) => (at % 2 ? { role: 'tool', tool_call_id: 'c', content: 'r' } : answer({ tool_calls: [called(at)] })),
      'messages',
    ),
    'system prompts': many((at) => ({ role: 'system', content: `s${at}` }), 'messages'),
    'answers in a row': many(() => answer({ refusal: 'no' }), 'messages'),
    'calls of one answer': of((size) => ({ messages: [answer({ tool_calls: list(size, called) })] })),
    'parts of text': of((size) => ({ messages: [user(list(size, text))] })),
    'parts that are cached': of((size) => ({ messages: [user(list(size, (at) => ({ ...text(at), ...cached })))] })),
    images: of((size) => ({
      messages: [user(list(size, () => ({ type: 'image_url', image_url: { url: IMAGE } })))],
    })),
    files: of((size) => ({ messages: [user(list(size, () => ({ type: 'file', file: { file_data: IMAGE } })))] })),
    'empty texts': of((size) => ({ messages: [user(list(size, () => ({ type: 'text', text: '' })))] })),
    'one long text': of((size) => ({ messages: [user('é'.repeat(size * 20))] })),
    'one long image': of((size) => ({
      messages: [user([{ type: 'image_url', image_url: { url: IMAGE + 'A'.repeat(size * 20) } }])],
    })),
    tools: many(declared, 'tools'),
    'stop sequences': many((at) => `s${at}`, 'stop'),
    'parts of unknown types': of((size) => ({ messages: [user(list(size, () => ({ x: 1 })))] })),
    'a part with a long type': of((size) => ({ messages: [user([{ type: 'x_'.repeat(size * 10), text: '' }])] })),
    'parts in parts': (size) =>
      `"messages":[{"role":"user","content":${nested(size, '[{"type":"text","content":', '}]', '""')}}]`,
    'single parts in single parts': (size) =>
      `"messages":[{"role":"user","content":${nested(size, '{"type":"text","content":', '}', '""')}}]`,
    'arguments in arguments': of((size) => ({
      messages: [
        answer({ tool_calls: [{ ...called(0), function: { name: 'f', arguments: nested(size, '{"a":', '}', '1') } }] }),
      ],
    })),
    'values in the arguments of one call': of((size) => ({
      messages: [answer({ tool_calls: [{ ...called(0), function: { name: 'f', arguments: objects(size * 20) } }] })],
    })),
    'values in the arguments of many calls': of((size) => ({
      messages: list(size, (at) =>
        answer({ tool_calls: [{ ...called(at), function: { name: 'f', arguments: objects(20) } }] }),
      ),
    })),
  },
  messages: {
    'neighbours of one role': many((at) => user(`m${at}`), 'messages'),
    'roles in turn': many((at) => (at % 2 === 0 ? user('q') : answer({})), 'messages'),
    'system prompts': many((at) => text(at), 'system'),
    'system messages': many((at) => ({ role: 'system', content: `s${at}` }), 'messages'),
    'calls of one answer': of((size) => ({
      messages: [answer({ content: list(size, (at) => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} })) })],
    })),
    'results of tools': of((size) => ({
      messages: [user(list(size, (at) => ({ type: 'tool_result', tool_use_id: `c${at}`, content: 'r' })))],
    })),
    'results of many parts': of((size) => ({
      messages: [user([{ type: 'tool_result', tool_use_id: 'c', content: list(size, text) }])],
    })),
    'blocks of text': of((size) => ({ messages: [user(list(size, text))] })),
    'texts of one answer': of((size) => ({ messages: [answer({ content: list(size, text) })] })),
    reasoning: of((size) => ({
      messages: [answer({ content: list(size, () => ({ type: 'thinking', thinking: 't' })) })],
    })),
    images: of((size) => ({
      messages: [
        user(list(size, () => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA' } }))),
      ],
    })),
    documents: of((size) => ({
      messages: [user(list(size, () => ({ type: 'document', source: { type: 'content', content: [text(0)] } })))],
    })),
    'one long text': of((size) => ({ messages: [user('é'.repeat(size * 20))] })),
    'a block with a long type': of((size) => ({ messages: [user([{ type: 'x_tool_use'.repeat(size * 2) }])] })),
    tools: many((at) => ({ name: `f${at}`, input_schema: { type: 'object' } }), 'tools'),
    'stop sequences': many((at) => `s${at}`, 'stop_sequences'),
    features: many((at) => `feature-${at}`, 'anthropic_beta'),
    'features in features': (size) => `"anthropic_beta":${nested(size * 20, '[', ']')}`,
    'results in results': (size) =>
      `"messages":[{"role":"user","content":${nested(size, '[{"type":"tool_result","tool_use_id":"c","content":', '}]', '""')}}]`,
    'single results in single results': (size) =>
      `"messages":[{"role":"user","content":[${nested(size, '{"type":"web_fetch_result","content":', '}', '""')}]}]`,
    'search results in search results': (size) =>
      `"messages":[{"role":"user","content":${nested(size, '[{"type":"search_result","content":', '}]', '[]')}}]`,
    'texts deep in search results': (size) => {
      const texts = JSON.stringify(list(size, text));
      const depth = Math.min(size / 10, MAX_DEPTH);
      return `"messages":[{"role":"user","content":${nested(depth, '[{"type":"search_result","content":', '}]', texts)}}]`;
    },
  },
  responses: {
    messages: many((at) => user(`m${at}`), 'input'),
    'calls and their results': many(
      (at) =>
        at % 2 === 0
          ? { type: 'function_call', call_id: `c${at}`, name: 'f', arguments: '{}' }
          : { type: 'function_call_output', call_id: 'c', output: 'r' },
      'input',
    ),
    'parts of text': of((size) => ({ input: [user(list(size, (at) => ({ type: 'input_text', text: `t${at}` })))] })),
    images: of((size) => ({ input: [user(list(size, () => ({ type: 'input_image', image_url: IMAGE })))] })),
    'encrypted reasoning': many((at) => ({ type: 'reasoning', encrypted_content: `e${at}` }), 'input'),
    'marked reasoning': many((at) => ({ type: 'reasoning', encrypted_content: `e${at}.gw${MARK}` }), 'input'),
    'marked ids': many((at) => ({ type: 'item_reference', id: markedId(`i${at}`) }), 'input'),
    'one long text': of((size) => ({ input: 'é'.repeat(size * 20) })),
    'an item with a long type': of((size) => ({ input: [{ type: `${'_call_output'.repeat(size * 2)}x` }] })),
    'one long name of the conversation': of((size) => ({ prompt_cache_key: 'k'.repeat(size * 20) })),
    tools: many((at) => ({ type: 'function', name: `f${at}`, parameters: {} }), 'tools'),
    'tools of one namespace': of((size) => ({
      tools: [{ type: 'namespace', name: 'n', tools: list(size, (at) => ({ type: 'function', name: `f${at}` })) }],
    })),
    namespaces: many(
      (at) => ({ type: 'namespace', name: `n${at}`, tools: [{ type: 'function', name: 'f' }] }),
      'tools',
    ),
    'parts in parts': (size) => `"input":${nested(size, '[{"type":"message","role":"user","content":', '}]', '[]')}`,
  },
  embeddings: {
    texts: many((at) => `t${at}`, 'input'),
    'lists of tokens': many(() => [1, 2, 3], 'input'),
    tokens: many((at) => at, 'input'),
    'one long text': of((size) => ({ input: 'é'.repeat(size * 20) })),
  },
};

/** Members that any client may add to any body. */
const ANYWHERE: Readonly<Record<string, SizedText>> = {
  members: of((size) => Object.fromEntries(list(size, (at) => [`m${at}`, at]))),
  'one member many times': (size) => list(size, (at) => `"model":"gpt","temperature":0.${at}`).join(),
  'one member alone, many times': (size) => list(size * 10, () => `"model":"gpt"`).join(),
  'a member in other spellings': (size) => list(size, () => `"Model":"other","MODEL":"other"`).join(),
  'a member with escapes in its name': (size) => list(size, () => `"mod\\u0065l":"gpt"`).join(),
  'members behind letters of two bytes': (size) => list(size, (at) => `"é${at}":"é","model":"gpt"`).join(),
  'one long name': (size) => `"${'m'.repeat(size * 20)}":1`,
  'a text of escapes': (size) => `"m":"${'\\u00e9\\"\\\\'.repeat(size)}"`,
  'a text of escaped letters': (size) => `"m":"${'\\u0074'.repeat(size * 10)}"`,
  'a text of backslashes': (size) => `"m":"${'\\\\'.repeat(size * 10)}"`,
  'a text of quotes': (size) => `"m":"${'\\"'.repeat(size * 10)}"`,
  'numbers with exponents': (size) => `"m":[${list(size, () => '1e20').join()}]`,
  'one long number': (size) => `"m":${'1'.repeat(size * 20)}`,
  blanks: (size) => `"m"${' \n'.repeat(size * 10)}:${'\t'.repeat(size * 10)}1`,
  'lists in lists': (size) => `"m":${nested(size * 20, '[', ']')}`,
  'objects in objects': (size) => `"m":${nested(size, '{"a":', '}', '1')}`,
  'deciding members': (size) => list(size, () => `"service_tier":"auto","tools":[]`).join(),
  'the same tools many times': (size) => list(size, () => `"tools":[{"type":"function","name":"f"}]`).join(),
  'members of one tool': of((size) => ({ tools: [Object.fromEntries(list(size, (at) => [`m${at}`, at]))] })),
  'a long name in a tool': of((size) => ({ tools: [{ ['ΐ'.repeat(size * 10)]: 1 }] })),
  'plugins in other spellings': of((size) => ({ plugins: list(size, () => ({ ID: 'web' })) })),
  'searches of the web': of((size) => ({ tools: list(size, () => ({ type: 'web_search', max_uses: 1 })) })),
  'a type that is nearly known': of((size) => ({ tools: [{ type: `web_search${'_1'.repeat(size)}x` }] })),
  'management of the context': (size) => `"context_management":{"edits":"${'\\u0063ompac\\u0074'.repeat(size)}"}`,
  'a long name of a model': of((size) => ({ model: 'm'.repeat(size * 20) })),
  'a text that ends a name': of((size) => ({ user: 'u'.repeat(size * 20) })),
};

export const BARE: Readonly<Record<ApiName, Readonly<Record<string, unknown>>>> = {
  chat: { model: 'gpt', max_tokens: 100, messages: [user('q')] },
  messages: { model: 'gpt', max_tokens: 100, messages: [user('q')] },
  responses: { model: 'gpt', max_output_tokens: 100, input: 'q' },
  embeddings: { model: 'gpt', input: 'q' },
};

/** The shapes of an API's bodies, each a body of this size. */
export function shapesOf(api: ApiName): ReadonlyArray<Shape> {
  return Object.entries({ ...OWN[api], ...ANYWHERE }).map(([name, grown]) => {
    const body = (size: number) => {
      const replaced = Object.keys(JSON.parse(`{${grown(1)}}`));
      const bare = Object.entries(BARE[api]).filter(([member]) => !replaced.includes(member));
      return `${JSON.stringify(Object.fromEntries(bare)).slice(0, -1)},${grown(size)}}`;
    };
    return { name, body, isOwn: name in OWN[api] };
  });
}

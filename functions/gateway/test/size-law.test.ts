// Work of the gateway: it is in proportion to the bytes of clients and providers, whatever their shape.
import { describe, expect, test } from 'vitest';
import { MAX_VALUES, sizeOfJson } from '#core/json/json-limits.ts';
import { FRAMED, frame } from '../../../test/gateway/aws-event-stream.ts';
import { exchangeOf } from '../../../test/gateway/exchange.ts';
import { growthOf, MAX_GROWTH, type Prepare, ratioOf } from '../../../test/gateway/growth.ts';
import { entry, KEY, keyRecord, scope, snapshotOf } from '../../../test/gateway/instance.ts';
import { PAIRS, type Pair } from '../../../test/gateway/pairs.ts';
import { BARE, list, piecesOf, shapesOf } from '../../../test/gateway/request-shapes.ts';
import { stage } from '../../../test/gateway/stage.ts';
import {
  EVENTS_ANYWHERE,
  IN_ONE,
  IN_SEVENS,
  PACKETS,
  REPLIES,
  type Replies,
} from '../../../test/gateway/stream-shapes.ts';
import { SSE } from '../../../test/gateway/upstream.ts';
import type { Caller } from '../caller/authenticate.ts';
import { createModels } from '../caller/models.ts';
import { MAX_BODY } from '../request/memory-budget.ts';
import { orderByConversation } from '../targets/affinity.ts';
import { codecOf } from '../wire/api.ts';
import { APIS } from '../wire/apis.ts';
import { toChat } from '../wire/chat/chat.ts';
import { membersOf } from '../wire/json/json-splice.ts';
import { asksForHourInCache } from '../wire/prompt/higher-rates.ts';
import { normalizedGrowthOf } from '../wire/prompt/letters.ts';
import { growthOf as growthOfText } from '../wire/prompt/prompt.ts';
import { declaredToolsIn } from '../wire/prompt/unmetered-features.ts';
import { RequestBody } from '../wire/request.ts';
import { responses } from '../wire/responses/responses.ts';

test('every codec of every API has a provider here', () => {
  const codecs = APIS.flatMap(({ codecs }) => Object.values(codecs));
  const covered = new Set(PAIRS.map(({ api, provider }) => codecOf(api, provider)));
  expect(codecs.filter((codec) => !covered.has(codec))).toEqual([]);
});

/** Replies of a provider, by API and dialect. */
const REPLIES_OF_PROVIDERS: Readonly<Record<string, Replies>> = {
  'chat openai': REPLIES.chat,
  'chat anthropic': REPLIES.messages,
  'messages openai': REPLIES.chat,
  'messages anthropic': REPLIES.messages,
  'responses openai': REPLIES.responses,
  'embeddings openai': REPLIES.embeddings,
};

function repliesTo({ api, provider }: Pair): Replies {
  const replies = REPLIES_OF_PROVIDERS[`${api.name} ${provider.dialect}`];
  if (replies === undefined) throw new Error(`no reply here is one to ${api.name} in the dialect ${provider.dialect}`);
  return replies;
}

interface Reply {
  readonly headers: Readonly<Record<string, string>>;
  readonly packets: ReadonlyArray<Uint8Array>;
}

/**
 * A gateway in front of this provider, which gives every request this reply. Returns the status that the client gets.
 */
function open(
  { name, model, api }: Pair,
  { headers, packets }: Reply,
  { path = api.path, limit = '1000000000' } = {},
): (sent: Uint8Array) => Promise<number> {
  const names = ['apiKey', 'apiBase', 'awsRegion', 'vertexLocation', 'vertexProject'];
  const credentials = Object.fromEntries(names.map((one) => [one, { secret: 's', secretKey: one }]));
  const served = entry('gpt', { provider: name, model, credentials, toolCosts: { webSearch: '0.01' } });
  const cooldown = { failures: Number.MAX_SAFE_INTEGER, within: 1, duration: 1 };
  async function* body() {
    yield* packets;
  }
  const { app } = stage({
    // With two entries and stored responses, ids and encrypted reasoning are marked.
    snapshot: {
      ...snapshotOf([served, { ...served, identifier: 'other' }], { retries: 0, cooldown }),
      storeResponses: true,
    },
    keys: { [KEY]: keyRecord({ limit }) },
    deps: {
      credentials: { read: (_, one) => (one === 'apiBase' ? 'https://provider.test' : `value-of-${one}`) },
      upstream: async (request) => {
        for (const _ of piecesOf(request.body));
        return { status: 200, headers, body: body() };
      },
    },
  });
  return async (sent) => {
    let status = 0;
    await app.handle(
      exchangeOf(path, sent, {
        begin: (begun) => {
          status = begun;
        },
      }),
    );
    return status;
  };
}

const encoder = new TextEncoder();
const JSON_TYPE = { 'content-type': 'application/json' };
/** Everything takes minutes; a part of it shows a mistake as well. */
const IS_ALL = process.env.TEST_CAMPAIGNS !== undefined;
/** Elements of the small input, in bodies that a route reads element by element and in others. */
const [MANY, SOME] = [1500, 300];
/** Clouds differ in their addresses, and in the frames of their streams. */
const DIALECTS = PAIRS.filter(({ provider }) => provider.cloud === undefined);

/** The law: work grows at most in proportion to the size, and no size is our error. To fill memory is work too. */
async function expectLinear(prepare: (size: number) => () => Promise<number>, size: number): Promise<void> {
  const statuses = new Set<number>();
  const work: Prepare = (elements) => {
    const run = prepare(elements);
    return async () => void statuses.add(await run());
  };
  const growth = await growthOf(work, size);
  expect(growth).toBeLessThan(MAX_GROWTH);
  expect([...statuses]).not.toContain(500);
}

describe.each(DIALECTS)('$label', (pair) => {
  const { plain, events } = repliesTo(pair);
  const bare = BARE[pair.api.name];

  test.each(shapesOf(pair.api.name))('a request of many: $name', async ({ body, isOwn }) => {
    const answer = Object.values(plain)[0]?.(1) ?? '';
    const ask = open(pair, { headers: JSON_TYPE, packets: [encoder.encode(answer)] });
    const prepare = (size: number) => {
      const bytes = encoder.encode(body(size));
      return () => ask(bytes);
    };
    await expectLinear(prepare, isOwn ? MANY : SOME);
  });

  test.each(Object.entries(plain))('a reply of many: %s', async (_, of) => {
    const sent = encoder.encode(JSON.stringify(bare));
    const prepare = (size: number) => {
      const ask = open(pair, { headers: JSON_TYPE, packets: [encoder.encode(of(size))] });
      return () => ask(sent);
    };
    await expectLinear(prepare, SOME);
  });

  if (codecOf(pair.api, pair.provider)?.streams === undefined) return;

  test.each(Object.entries(events))('a stream of many: %s', async (_, of) => {
    await expectLinear(streamOf(pair, of, IN_ONE), SOME);
  });

  test.each(PACKETS.flatMap((packets) => Object.entries(EVENTS_ANYWHERE).map(([name, of]) => ({ name, of, packets }))))(
    'a stream of many: $name, in $packets.name',
    async ({ of, packets }) => {
      await expectLinear(streamOf(pair, of, packets), SOME);
    },
  );
});

const FRAMES = { words: REPLIES.messages.events.words, 'a long event': EVENTS_ANYWHERE['a long event'] ?? (() => []) };
const FRAMED_PAIRS = PAIRS.filter(({ provider: { cloud } }) => cloud === 'bedrock');

test.each(FRAMED_PAIRS.flatMap((pair) => Object.entries(FRAMES).map(([name, of]) => ({ pair, name, of }))))(
  '$pair.label: a stream in frames of AWS, in packets of seven bytes: $name',
  async ({ pair, of }) => {
    await expectLinear(streamOf(pair, of, IN_SEVENS), SOME);
  },
);

test.each(DIALECTS.flatMap((pair) => ({ ...pair, ...repliesTo(pair) })).filter(({ open }) => open !== undefined))(
  '$label: a stream that is cut while many parts of it are open',
  async ({ open: of = () => [], ...pair }) => {
    await expectLinear(streamOf(pair, of, IN_ONE), SOME);
  },
);

test('the order of the entries of a model reads the name of a conversation only once', async () => {
  const prepare = (size: number) => {
    const targets = list(size / 10, (at) => ({ entry: { identifier: `e${at}`, weight: 1, priority: 0 } }));
    const name = 'k'.repeat(size * 20);
    return async () => orderByConversation(targets, 'SimpleShuffle', name).length;
  };
  await expectLinear(prepare, SOME);
});

const COUNTING = DIALECTS.flatMap(({ api, ...more }) =>
  api.counting === undefined ? [] : [{ ...more, api, ...api.counting }],
);

describe.each(IS_ALL ? COUNTING : [])('$label', ({ path, ...pair }) => {
  test.each(shapesOf(pair.api.name).filter(({ isOwn }) => isOwn))(
    'a request to be counted of many: $name',
    async ({ body }) => {
      const reply = { headers: JSON_TYPE, packets: [encoder.encode('{"input_tokens":7}')] };
      const ask = open(pair, reply, { path: pair.api.path + path });
      const prepare = (size: number) => {
        const bytes = encoder.encode(body(size));
        return () => ask(bytes);
      };
      await expectLinear(prepare, MANY);
    },
  );
});

/**
 * The largest shapes for routes that copy and routes that translate them: the same code reads members that any body may
 * have.
 */
const WITH_ANYTHING = ['responses for openai', 'messages for openai'];

describe.each(IS_ALL ? DIALECTS : [])('$label', (pair) => {
  test.each(shapesOf(pair.api.name).filter(({ isOwn }) => isOwn || WITH_ANYTHING.includes(pair.label)))(
    'the largest request of many: $name',
    async ({ body }) => {
      const answer = Object.values(repliesTo(pair).plain)[0]?.(1) ?? '';
      const ask = open(pair, { headers: JSON_TYPE, packets: [encoder.encode(answer)] });
      const some = body(1000);
      const size =
        990 * Math.min(MAX_BODY / encoder.encode(some).length, MAX_VALUES / (some.match(/[,[{]/g)?.length ?? 1));
      expect([200, 400, 404]).toContain(await ask(encoder.encode(body(Math.floor(size)))));
    },
  );
});

/** Bodies of up to 1 MiB count for no rate of bytes: none may take many times the work of a plain one. */
const MAX_TIMES = 8;
/** Texts are read by the engine, whatever is in them. */
const MAX_OF_LETTERS = 4;

test.each([
  { type: 'image_url', image_url: 'data:,' },
  { type: 'image_url', image_url: { url: 'https://a/b' } },
  { type: 'input_text', text: 'x' },
  { type: 'file', file: { file_data: 'x' } },
  { type: 'tool_result', content: [{ type: 'text', text: 'x' }] },
])('a request of many parts like %j takes few times the work of as many texts', async (part) => {
  const reading = (one: object) => {
    const bytes = encoder.encode(JSON.stringify({ model: 'm', messages: [{ content: list(10_000, () => one) }] }));
    return async () => void toChat(bytes);
  };
  expect(await ratioOf(reading(part), reading({ type: 'text', text: 'x' }), MAX_TIMES)).toBeLessThan(MAX_TIMES);
});

test.each(['\\u0074', 'é'])(
  'a request with a long text of %s takes few times the work of a plain one',
  async (letter) => {
    const reading = (letters: string) => {
      const bytes = encoder.encode(`{"model":"m","messages":[],"x":"${letters}"}`);
      return async () => void toChat(bytes);
    };
    const [escaped, plain] = [letter.repeat(1_000_000), 't'.repeat(1_000_000 * encoder.encode(letter).length)];
    expect(await ratioOf(reading(escaped), reading(plain), MAX_OF_LETTERS)).toBeLessThan(MAX_OF_LETTERS);
  },
);

/** Units of hostile texts. The scans of a body read each unit, and the engine reads plain words much faster. */
const LETTERS = [
  '\\\\u',
  '\\u0000',
  '\\u754c',
  '\\ud834\\udd5e',
  '\\"',
  '\\"\\\\u',
  '\\"ttl\\" ',
  '界',
  '𝅗𝅥',
  '.gw\\\\u',
];
/** A body of this many bytes is not yet large. */
const TEXT = 1_000_000;

describe.each(DIALECTS)('$label: with a spent budget', (pair) => {
  const texts = textsOf(pair.api.name);

  test.each(LETTERS)('a text of %s is refused with few times the work of a plain one', async (letters) => {
    const ask = open(pair, { headers: JSON_TYPE, packets: [] }, { limit: '0' });
    const reading = (unit: string) => {
      const bytes = encoder.encode(texts(unit.repeat(TEXT / encoder.encode(unit).length)));
      return async () => expect(await ask(bytes)).toBe(429);
    };
    expect(await ratioOf(reading(letters), reading('word '), MAX_OF_LETTERS)).toBeLessThan(MAX_OF_LETTERS);
  });
});

/** A scan of a body may take this many times as long as the engine takes to parse as many escaped letters. */
const MAX_OF_SCAN = 6;
const SCANS: Readonly<Record<string, (body: RequestBody) => unknown>> = {
  'its values': ({ bytes }) => sizeOfJson(bytes),
  'its members': ({ text }) => membersOf(text),
  'an hour in the cache': ({ text }) => asksForHourInCache(text),
  'declared tools': ({ text }) => declaredToolsIn(text),
  'its growth by normalization': normalizedGrowthOf,
  'its growth by translation': ({ text }) => growthOfText(text),
};

describe.each(Object.entries(SCANS))('the scan for %s', (_, scan) => {
  test.each(LETTERS)('of a text of %s takes at most a few times as long as parsing', async (letters) => {
    const texts = textsOf('chat');
    const text = texts(letters.repeat(TEXT / encoder.encode(letters).length));
    const body = new RequestBody(encoder.encode(text), text);
    const escapes = texts('\\u0000'.repeat(TEXT / 6));
    const ratio = await ratioOf(
      async () => void scan(body),
      async () => void JSON.parse(escapes),
      MAX_OF_SCAN,
    );
    expect(ratio).toBeLessThan(MAX_OF_SCAN);
  });
});

/** A body with this text, as JSON, where a prompt is. */
function textsOf(api: Pair['api']['name']): (text: string) => string {
  const bare = JSON.stringify(BARE[api]);
  if (!bare.includes('"q"')) throw new Error(`the smallest body of ${api} has no prompt "q"`);
  return (text) => bare.replace('"q"', () => `"${text}"`);
}

test.each([
  { encrypted_content: 'a.gw01234567' },
  { id: `a.gw${'0'.repeat(40)}` },
  { role: 'user', content: '\u0000' },
])('a request of many items like %j takes few times the work of plain ones', async (item) => {
  const reading = (one: object) => {
    const bytes = encoder.encode(JSON.stringify({ model: 'm', input: list(10_000, () => one) }));
    return async () => void responses.toRequest(bytes, { header: () => undefined, query: '' });
  };
  const plain = Object.fromEntries(Object.entries(item).map(([name, value]) => [name, 'x'.repeat(value.length)]));
  expect(await ratioOf(reading(item), reading(plain), MAX_OF_LETTERS)).toBeLessThan(MAX_OF_LETTERS);
});

test.each(['ΐ', 'İ', 'ſ', 'ß', 'K', 'A'])(
  'a tool with many members whose names have the letter %s takes few times the work of one with plain names',
  async (letter) => {
    const reading = (letters: string) => {
      const members = list(10_000, (at) => `"${letters}${at}":1`).join();
      const bytes = encoder.encode(`{"model":"m","messages":[],"tools":[{${members}}]}`);
      return async () => void toChat(bytes);
    };
    const plain = reading('a'.repeat(56 * encoder.encode(letter).length));
    expect(await ratioOf(reading(letter.repeat(56)), plain, MAX_OF_LETTERS)).toBeLessThan(MAX_OF_LETTERS);
  },
);

test('the list of models with ten restrictions takes work in proportion to their length', async () => {
  const prepare: Prepare = (size) => {
    const names = list(size, (at) => `${'n'.repeat(240)}${String(at).padStart(4, '0')}`);
    const snapshot = snapshotOf(names.map((name) => entry(name)));
    const models = createModels({ snapshots: { current: () => snapshot } });
    // Each has texts of its own, as from the database: the same ones are compared by their addresses.
    const own = (): string[] => JSON.parse(JSON.stringify(names.toReversed()));
    const caller = { scopes: list(10, () => scope('team', { models: own() })) } as unknown as Caller;
    return async () => void (await models(caller, { header: () => undefined }));
  };
  const warmUp = prepare(64);
  for (let time = 0; time < 50; time += 1) await warmUp();
  expect(await growthOf(prepare, 64)).toBeLessThan(MAX_GROWTH);
});

/** A request that is answered by a stream of this number of events. */
function streamOf(
  pair: Pair,
  of: (size: number) => ReadonlyArray<string>,
  packets: (typeof PACKETS)[number],
): (size: number) => () => Promise<number> {
  const sent = encoder.encode(JSON.stringify({ ...BARE[pair.api.name], stream: true }));
  const isFramed = pair.provider.cloud === 'bedrock';
  return (size) => {
    const written = of(size).map((event) => (isFramed ? framed(event) : encoder.encode(event)));
    const ask = open(pair, { headers: isFramed ? FRAMED : SSE, packets: packets.of(written) });
    return () => ask(sent);
  };
}

/** The data of an event in a frame of Bedrock. */
function framed(event: string): Uint8Array {
  const data = event.slice(event.indexOf('data: ') + 6).trimEnd();
  return frame({ ':event-type': 'chunk' }, JSON.stringify({ bytes: Buffer.from(data).toString('base64') }));
}

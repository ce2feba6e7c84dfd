// Every path that spends, with every dialect that serves it: a request of a client, and replies of a provider.
import type { DialectName } from '#core/models/providers.ts';
import { APIS } from '../../functions/gateway/wire/apis.ts';
import { COUNT, errorBody, event, message, START, STOP, words } from './anthropic.ts';
import { COMPLETED, CREATED, deltas, response } from './responses.ts';
import { chunk, completion, embedded, MESSAGES, streamed } from './upstream.ts';

/**
 * Replies of a provider of one dialect for one API, at a thousand nano-dollars a token of input and two thousand of
 * output.
 */
interface Fixture {
  readonly body: object;
  readonly whole: string;
  readonly cost: bigint;
  readonly refusal: string;
  /** Members that ask for work that no usage reports. */
  readonly unmetered: ReadonlyArray<object>;
  /** Absent: the API has no streams. */
  readonly stream?: {
    readonly whole: string[];
    readonly begun: string[];
    readonly cost: bigint;
    readonly error: string;
    /** An event by which the provider ends the stream, with this type of error. */
    readonly failed: (type: string) => string;
  };
}

const COST = 10n * 1000n + 5n * 2000n;
const STREAM_COST = 10n * 1000n + 3n * 2000n;
export const CHAT = { model: 'gpt', messages: MESSAGES };
const UNMETERED = [{ tools: [{ type: 'code_interpreter' }] }, { service_tier: 'priority' }, { background: true }];

const BESIDES_MESSAGES = [
  { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
  ...[{ speed: 'fast' }, { mcp_servers: [{ type: 'url' }] }, { inference_geo: 'us' }],
];

/** Words of a provider's error, none of which a client may get from a stream. */
const WORDS = 'Say hello. Organization org-17 has used up its tokens.';
const ofAnthropic = (type: string) => event('error', { error: { type, message: WORDS } });
const ofOpenai = (type: string) => `data: ${JSON.stringify({ error: { type, message: WORDS, code: type } })}\n\n`;
const ofResponses = (code: string) => event('error', { sequence_number: 4, code, message: WORDS, param: null });

const FIXTURES: Readonly<Record<string, Partial<Record<DialectName, Fixture>>>> = {
  '/messages': {
    anthropic: {
      body: { ...CHAT, max_tokens: 100 },
      whole: message('hello'),
      cost: COST,
      refusal: errorBody('invalid_request_error'),
      unmetered: BESIDES_MESSAGES,
      stream: {
        whole: [START, ...words('a', 'b'), COUNT, STOP],
        cost: STREAM_COST,
        error: 'api_error',
        begun: [START, ...words('a', 'b')],
        failed: ofAnthropic,
      },
    },
    openai: {
      body: { ...CHAT, max_tokens: 100 },
      whole: completion('hello'),
      cost: COST,
      refusal: '{"error":{"message":"No."}}',
      unmetered: BESIDES_MESSAGES,
      stream: {
        whole: streamed(['a', 'b']),
        cost: STREAM_COST,
        error: 'api_error',
        begun: [chunk({ content: 'a' }), chunk({ content: 'b' })],
        failed: ofOpenai,
      },
    },
  },
  '/responses': {
    openai: {
      body: { model: 'gpt', input: 'Say hello.', max_output_tokens: 100 },
      whole: response('hello'),
      cost: COST,
      refusal: '{"error":{"message":"No."}}',
      unmetered: [
        ...[{ background: true }, { store: true }, { conversation: 'conv_1' }, { service_tier: 'priority' }],
        { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
      ],
      stream: {
        whole: [CREATED, ...deltas('a', 'b'), COMPLETED],
        cost: STREAM_COST,
        error: 'server_error',
        begun: [CREATED, ...deltas('a', 'b')],
        failed: ofResponses,
      },
    },
  },
  '/embeddings': {
    openai: {
      body: { model: 'gpt', input: ['Say hello.'] },
      whole: embedded(10),
      cost: 10n * 1000n,
      refusal: '{"error":{"message":"No."}}',
      unmetered: [{ service_tier: 'priority' }, { provider: { order: ['dear'] } }],
    },
  },
  '/chat/completions': {
    openai: {
      body: CHAT,
      whole: completion('hello'),
      cost: COST,
      refusal: '{"error":{"message":"No."}}',
      unmetered: UNMETERED,
      stream: {
        whole: streamed(['a', 'b']),
        cost: STREAM_COST,
        error: 'upstream_error',
        begun: [chunk({ content: 'a' }), chunk({ content: 'b' })],
        failed: ofOpenai,
      },
    },
    anthropic: {
      body: CHAT,
      whole: message('hello'),
      cost: COST,
      refusal: errorBody('invalid_request_error'),
      unmetered: UNMETERED,
      stream: {
        whole: [START, ...words('a', 'b'), COUNT, STOP],
        cost: STREAM_COST,
        error: 'upstream_error',
        begun: [START, ...words('a', 'b')],
        failed: ofAnthropic,
      },
    },
  },
};

/** One path on which money is spent, and the provider behind it. */
export interface Way extends Fixture {
  readonly path: string;
  readonly provider: string;
}

/** Every path that spends, with and without `/v1`, behind every dialect that serves it. */
export const WAYS_TO_SPEND = APIS.flatMap(({ path, codecs }) =>
  Object.keys(codecs).flatMap((provider) =>
    [path, `/v1${path}`].map((asked): Way => ({ ...fixtureOf(path, provider), path: asked, provider })),
  ),
);

function fixtureOf(path: string, provider: string): Fixture {
  const fixture = Object.entries(FIXTURES[path] ?? {}).find(([dialect]) => dialect === provider)?.[1];
  if (fixture === undefined) throw new Error(`${path} behind ${provider} spends, and no test says what is charged`);
  return fixture;
}

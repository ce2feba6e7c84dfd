// The route of an API that counts the tokens of a prompt: its requests to providers, and its replies.
import { ok } from '#core/failure/result.ts';
import { countIn, parseJson } from '#core/json/json.ts';
import type { Api } from './api.ts';
import type { Codec } from './codec.ts';
import { usualTokens } from './prompt/prompt.ts';

/**
 * The API at its route for counts. A count makes no web search and stores nothing, so it needs no price for searches.
 */
export function toCountingApi({ counting: _, ...api }: Api, { path, toReply }: NonNullable<Api['counting']>): Api {
  const codecs = Object.entries(api.codecs).map(([dialect, codec]) => [dialect, countingCodec(codec, path)]);
  return {
    ...api,
    route: `${api.route}${path}`,
    path: `${api.path}${path}`,
    codecs: Object.fromEntries(codecs),
    toRequest: (bytes, client) => {
      const request = api.toRequest(bytes, client);
      return request.ok ? ok({ ...request.value, ...NO_ANSWER }) : request;
    },
    estimate: ({ input }) => toReply(usualTokens(input)),
  };
}

const NO_ANSWER = { stream: false, webSearches: undefined, store: undefined, limits: {}, limit: 0, minOutput: 0 };

const decoder = new TextDecoder();

/** The codec of a provider's count. The reply is an object with a number of input tokens. */
function countingCodec({ streams: _, ...codec }: Codec, path: string): Codec {
  return {
    ...codec,
    routeTo: (address) => {
      const route = codec.routeTo(address);
      return { ...route, url: withPath(route.url, path) };
    },
    readReply: (bytes) => {
      const isCount = countIn(parseJson(decoder.decode(bytes)), 'input_tokens') !== undefined;
      return isCount ? { body: bytes, usage: undefined, size: () => ({ outputBytes: 0, media: 0 }) } : undefined;
    },
  };
}

/** The address with this path added, before its query. */
function withPath(url: string, path: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url + path : url.slice(0, end) + path + url.slice(end);
}

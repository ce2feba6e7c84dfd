// Anthropic's Messages API: the members of a request that are ours to know. Bytes pass through to providers that speak it.
import type { Failure } from '#core/failure.ts';
import { countIn, listOf, member } from '#core/json.ts';
import type { HttpExchange } from '#core/ports/http-exchange.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Api } from '../api.ts';
import { anthropicErrors } from '../error-format.ts';
import { type Forwarded, invalid, isAbsent, isCount, lookalikesIn, type ModelRequest, readBody } from '../request.ts';
import { ambiguousIn, unmeteredIn } from '../unmetered-features.ts';
import { anthropic, OWN_MEMBERS } from './anthropic.ts';
import { measure } from './blocks.ts';
import { NESTED, RULES, webSearchesIn } from './unmetered.ts';

export const messages: Api = {
  name: 'messages',
  path: '/messages',
  hasOutput: true,
  codecs: { anthropic },
  errors: anthropicErrors,
  counting: { path: '/count_tokens', toReply: (input_tokens) => ({ input_tokens }) },
  toRequest,
};

function toRequest(bytes: Uint8Array, client: Pick<HttpExchange, 'header' | 'query'>): Result<ModelRequest, Failure> {
  const body = readBody(bytes);
  if (!body.ok) return body;
  const { members, ...sent } = body.value;
  const { messages, stream, max_tokens: limit } = members;
  if (!Array.isArray(messages)) return invalid('"messages" must be an array.', 'messages');
  if (!isAbsent(stream) && typeof stream !== 'boolean') return invalid('"stream" must be true or false.', 'stream');
  if (!isAbsent(limit) && !isCount(limit)) return invalid('"max_tokens" must be a whole number from 1.', 'max_tokens');
  const unmetered = unmeteredIn(members, RULES) ?? ambiguousIn(sent.text, sent.object.members, NESTED);
  if (unmetered !== undefined) return err(unmetered);
  return ok({
    ...sent,
    stream: stream === true,
    ...{ streamOptions: undefined, includeUsage: true, n: 1 },
    limits: { max_tokens: limit ?? undefined },
    limit: limit ?? undefined,
    minOutput: minOutputOf(members.thinking),
    input: measure(bytes.length, members),
    webSearches: webSearchesIn(listOf(members.tools)),
    lookalikes: lookalikesIn(sent.object, OWN_MEMBERS),
    forwarded: forwardedBy(client),
  });
}

/** A limit below the budget of thinking is refused by the provider. */
function minOutputOf(thinking: unknown): number {
  return member(thinking, 'type') === 'enabled' ? (countIn(thinking, 'budget_tokens') ?? 0) + 1 : 1;
}

/** Headers that choose the version and the features of the API: the provider reads them as the client wrote them. */
const FORWARDED = ['anthropic-version', 'anthropic-beta'];

function forwardedBy(client: Pick<HttpExchange, 'header' | 'query'>): Forwarded {
  const headers: Record<string, string> = {};
  for (const name of FORWARDED) {
    const value = client.header(name);
    if (value !== undefined) headers[name] = value;
  }
  return { query: client.query, headers };
}

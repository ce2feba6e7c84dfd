// OpenAI's Responses API: the members of a request that are ours to know. Bytes pass through to providers that have it.
import type { Failure } from '#core/failure.ts';
import { listOf, member, textOf } from '#core/json.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Api } from '../api.ts';
import { responsesErrors } from '../error-format.ts';
import { type Affinity, invalid, isAbsent, isCount, lookalikesIn, type ModelRequest, readBody } from '../request.ts';
import { ambiguousIn, type Members, unmeteredIn } from '../unmetered-features.ts';
import { continuesStored, measure } from './items.ts';
import { OWN_MEMBERS, openai } from './openai.ts';
import { NESTED, RULES, webSearchesIn } from './unmetered.ts';

export const responses: Api = {
  name: 'responses',
  path: '/responses',
  hasOutput: true,
  codecs: { openai },
  errors: responsesErrors,
  counting: { path: '/input_tokens', toReply: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }) },
  toRequest,
};

/** No provider takes a lower limit. */
const MIN_OUTPUT = 16;

function toRequest(bytes: Uint8Array): Result<ModelRequest, Failure> {
  const body = readBody(bytes);
  if (!body.ok) return body;
  const { members, ...sent } = body.value;
  const { input, stream, max_output_tokens: limit } = members;
  if (!isAbsent(input) && typeof input !== 'string' && !Array.isArray(input)) {
    return invalid('"input" must be a text or an array.', 'input');
  }
  if (!isAbsent(stream) && typeof stream !== 'boolean') return invalid('"stream" must be true or false.', 'stream');
  if (!isAbsent(limit) && !isCount(limit)) {
    return invalid('"max_output_tokens" must be a whole number from 1.', 'max_output_tokens');
  }
  const unmetered = unmeteredIn(members, RULES) ?? ambiguousIn(sent.text, sent.object.members, NESTED);
  if (unmetered !== undefined) return err(unmetered);
  return ok({
    ...sent,
    stream: stream === true,
    ...{ streamOptions: undefined, includeUsage: true, n: 1 },
    limits: { max_output_tokens: limit ?? undefined },
    limit: limit ?? undefined,
    minOutput: MIN_OUTPUT,
    input: measure(bytes.length, members),
    webSearches: webSearchesIn(listOf(members.tools)),
    lookalikes: lookalikesIn(sent.object, OWN_MEMBERS),
    affinity: affinityOf(members),
  });
}

/** Responses that a provider has stored, and reasoning that it has encrypted, belong to the account that made them. */
function affinityOf(members: Members): Affinity {
  const isEncrypted = listOf(members.input).some((item) => typeof member(item, 'encrypted_content') === 'string');
  const conversation = textOf(members.prompt_cache_key) ?? '';
  return { conversation, isBound: isEncrypted || continuesStored(members) };
}

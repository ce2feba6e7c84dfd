// OpenAI's Responses API: the members of a request that are ours to know. Bytes pass through to providers that have it.
import type { Failure } from '#core/failure.ts';
import { listOf, member, textOf } from '#core/json.ts';
import { ok, type Result } from '#core/result.ts';
import type { Api } from '../api.ts';
import { responsesErrors } from '../error-format.ts';
import { readLimited } from '../limited-request.ts';
import { type Affinity, invalid, isAbsent, type ModelRequest } from '../request.ts';
import type { Members } from '../unmetered-features.ts';
import { continuesStored, measure } from './items.ts';
import { unmark } from './mark.ts';
import { OWN_MEMBERS, openai } from './openai.ts';
import { NESTED, RULES, webSearchesIn } from './unmetered.ts';

export const responses: Api = {
  name: 'responses',
  path: '/responses',
  hasOutput: true,
  codecs: { openai },
  errors: responsesErrors,
  counting: { path: '/input_tokens', toReply: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }) },
  toRequest: (bytes) => toRequest(bytes),
};

/** No provider takes a lower limit. */
const MIN_OUTPUT = 16;

const FORM = { limit: 'max_output_tokens', own: OWN_MEMBERS, rules: RULES, nested: NESTED };

/** `by`: the mark that was taken out of the body. */
function toRequest(bytes: Uint8Array, by?: string): Result<ModelRequest, Failure> {
  const read = readLimited(bytes, FORM, ({ input }) =>
    isAbsent(input) || typeof input === 'string' || Array.isArray(input)
      ? undefined
      : invalid('"input" must be a text or an array.', 'input'),
  );
  if (!read.ok) return read;
  const { members, request } = read.value;
  const marked = unmark(request);
  if (marked !== undefined && by === undefined) return toRequest(marked.bytes, marked.by);
  return ok({
    ...request,
    minOutput: MIN_OUTPUT,
    input: measure(bytes.length, members),
    webSearches: webSearchesIn(members),
    affinity: { ...affinityOf(members), ...(by === undefined ? {} : { madeBy: by }) },
  });
}

/** Responses that a provider has stored, and reasoning that it has encrypted, belong to the account that made them. */
function affinityOf(members: Members): Affinity {
  const isEncrypted = listOf(members.input).some((item) => typeof member(item, 'encrypted_content') === 'string');
  const conversation = textOf(members.prompt_cache_key) ?? '';
  return { conversation, isBound: isEncrypted || continuesStored(members) };
}

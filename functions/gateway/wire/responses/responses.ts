// OpenAI's Responses API: the members of a request that are ours to know. Bytes pass through to providers that have it.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { listOf, member, textOf } from '#core/json/json.ts';
import { copyOf } from '#core/json/text.ts';
import type { Api } from '../api.ts';
import { responsesErrors } from '../dialects/error-format.ts';
import { readLimited } from '../prompt/limited-request.ts';
import { ambiguousIn, type Members } from '../prompt/unmetered-features.ts';
import { invalid, isAbsent, type ModelRequest } from '../request.ts';
import { measure, storedStateOf } from './items.ts';
import { type UnmarkedBody, unmark } from './marks.ts';
import { openai } from './openai.ts';
import { NESTED_MEMBERS, RULES, webSearchesIn } from './unmetered.ts';

export const responses: Api = {
  name: 'responses',
  route: 'responses',
  path: '/responses',
  hasOutput: true,
  codecs: { openai },
  errors: responsesErrors,
  counting: { path: '/input_tokens', toReply: (input_tokens) => ({ object: 'response.input_tokens', input_tokens }) },
  toRequest: (bytes) => toRequest(bytes),
};

/** Characters of a conversation's name that tell it from others: it is kept for as long as the request. */
const MAX_NAME = 256;
/** No provider takes a lower limit. */
const MIN_OUTPUT = 16;

const FORM = { limit: 'max_output_tokens', rules: RULES, nested: NESTED_MEMBERS };

/** Members of an item that say whether the provider completes it, which must stand once and in one spelling. */
const ITEMS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([['input', ['id', 'type']]]);
/** A body without these has no item with an id, however its letters are written. */
const MAYBE_ID = /"[iı]d"|\\u0/i;

/** `marked`: the marks that were taken out of the body. */
function toRequest(bytes: Uint8Array, marked?: Omit<UnmarkedBody, 'bytes'>): Result<ModelRequest, Failure> {
  const read = readLimited(bytes, FORM, ({ input }) =>
    isAbsent(input) || typeof input === 'string' || Array.isArray(input)
      ? undefined
      : invalid('"input" must be a text or an array.', 'input'),
  );
  if (!read.ok) return read;
  const { members, request } = read.value;
  const { body } = request;
  // Long bodies take a while to look through, and most items have no id: then no parser sees one.
  const ambiguous = MAYBE_ID.test(body.text) ? ambiguousIn(body.text, body.object.members, ITEMS) : undefined;
  if (ambiguous !== undefined) return err(ambiguous);
  const unmarked = marked === undefined ? unmark(body) : undefined;
  if (unmarked !== undefined) return toRequest(unmarked.bytes, unmarked);
  const input = measure(bytes.length, members);
  const stored = storedStateOf(members, marked?.ids ?? []);
  return ok({
    ...request,
    minOutput: MIN_OUTPUT,
    input,
    webSearches: webSearchesIn(members),
    store: false,
    stored: { ...stored, file: input.hasStoredFile ? 'input' : undefined },
    affinity: {
      conversation: copyOf((textOf(members.prompt_cache_key) ?? '').slice(0, MAX_NAME)),
      isBound: isEncrypted(members) || stored.reference !== undefined,
      entryMark: marked?.entryMark,
    },
  });
}

/** Reasoning that a provider has encrypted belongs, like what it has stored, to the account that made it. */
function isEncrypted({ input }: Members): boolean {
  return listOf(input).some((item) => typeof member(item, 'encrypted_content') === 'string');
}

// OpenAI's Responses API: the members that the gateway reads. Bytes pass through to providers that have the API.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { listOf, member, textOf } from '#core/json/json.ts';
import { copyOf } from '#core/json/text.ts';
import type { Api } from '../api.ts';
import { responsesErrors } from '../dialects/error-format.ts';
import { readLimited } from '../prompt/limited-request.ts';
import { ambiguousIn, type Members } from '../prompt/unmetered-features.ts';
import { invalid, isAbsent, type ModelRequest, readBody } from '../request.ts';
import { measure, storedStateOf } from './items.ts';
import { unmark } from './marks.ts';
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
  toRequest,
};

/** The maximum characters of a conversation's name: it is kept as long as the request. */
const MAX_NAME = 256;
/** The minimum limit of providers. */
const MIN_OUTPUT = 16;

const FORM = { limit: 'max_output_tokens', rules: RULES, nested: NESTED_MEMBERS };

/** Items take the most time of all that a body can contain: each may have marks and ids, which are checked. */
const MAX_ITEMS = 20_000;
const TOO_MANY_ITEMS = invalid(`"input" must have at most ${MAX_ITEMS} items. Send fewer, or join texts.`, 'input');

/** Members of an item that decide whether the provider completes it. Each may occur only once, in one spelling. */
const ITEMS: ReadonlyMap<string, ReadonlyArray<string>> = new Map([['input', ['id', 'type']]]);
/** A pattern that every body with an `id` matches, however its letters are written. */
const MAYBE_ID = /"[iı]d"|\\u0/i;

function toRequest(bytes: Uint8Array): Result<ModelRequest, Failure> {
  const parsed = readBody(bytes);
  if (parsed.ok && listOf(parsed.value.members.input).length > MAX_ITEMS) return TOO_MANY_ITEMS;
  // Marks are removed first: the rest of the work is done once, for the body as the provider gets it.
  const marked = parsed.ok ? unmark(parsed.value.body) : undefined;
  const read = readLimited(marked === undefined ? parsed : readBody(marked.bytes), FORM, ({ input }) =>
    isAbsent(input) || typeof input === 'string' || Array.isArray(input)
      ? undefined
      : invalid('"input" must be a text or an array.', 'input'),
  );
  if (!read.ok) return read;
  const { members, request } = read.value;
  const { body } = request;
  // Only bodies that may have an `id` are searched: long bodies take long, and most items have no id.
  const ambiguous = MAYBE_ID.test(body.text) ? ambiguousIn(body.text, body.object.members, ITEMS) : undefined;
  if (ambiguous !== undefined) return err(ambiguous);
  const input = measure(body.bytes.length, members);
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
      modelEntryMark: marked?.modelEntryMark,
    },
  });
}

/** Whether a request has encrypted reasoning. Like stored state, that belongs to the account that created it. */
function isEncrypted({ input }: Members): boolean {
  return listOf(input).some((item) => typeof member(item, 'encrypted_content') === 'string');
}

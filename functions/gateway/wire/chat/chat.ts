// The chat completions API: the members that the gateway reads, and the codecs of providers that serve it.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import type { Api } from '../api.ts';
import { openaiErrors } from '../dialects/error-format.ts';
import { hasAudio } from '../prompt/higher-rates.ts';
import type { PromptSize } from '../prompt/prompt.ts';
import { NOTHING_STORED, type StoredState } from '../prompt/stored-state.ts';
import { ambiguousIn, DECIDING_MEMBERS, unmeteredIn, webSearchesIn } from '../prompt/unmetered-features.ts';
import { invalid, isAbsent, isCount, type ModelRequest, minOutputOf, notObjectsIn, readBody } from '../request.ts';
import { anthropic } from './anthropic.ts';
import { LIMIT_NAMES, openai } from './openai.ts';
import { measure } from './parts.ts';

export const chat: Api = {
  name: 'chat',
  route: 'chat',
  path: '/chat/completions',
  hasOutput: true,
  codecs: { openai, anthropic },
  errors: openaiErrors,
  toRequest: toChat,
};

/** The maximum number of answers. Providers allow fewer; an absurd number would reserve an absurd amount. */
const MAX_ANSWERS = 1024;

/**
 * Validates a body. A member that decides the cost must have the right type, because providers read a wrong type in
 * different ways.
 */
export function toChat(bytes: Uint8Array): Result<ModelRequest, Failure> {
  const parsed = readBody(bytes);
  if (!parsed.ok) return parsed;
  const { body, model, members, hourInCache } = parsed.value;
  const { object } = body;
  const { messages, stream, stream_options: options, n } = members;
  if (!Array.isArray(messages)) return invalid('"messages" must be an array.', 'messages');
  const notObjects = notObjectsIn(members, 'messages', 'tools') ?? wrongCallsIn(messages);
  if (notObjects !== undefined) return notObjects;
  if (!isAbsent(stream) && typeof stream !== 'boolean') return invalid('"stream" must be true or false.', 'stream');
  if (!isAbsent(options) && !isMap(options)) return invalid('"stream_options" must be an object.', 'stream_options');
  if (!isAbsent(n) && !(isCount(n) && n <= MAX_ANSWERS)) {
    return invalid(`"n" must be a whole number from 1 to ${MAX_ANSWERS}.`, 'n');
  }
  const wrong = LIMIT_NAMES.find((name) => !isAbsent(members[name]) && !isCount(members[name]));
  // Some providers take a limit of zero for no limit.
  if (wrong !== undefined) return invalid(`"${wrong}" must be a whole number from 1.`, wrong);
  const decides = object.members.some(({ name }) => DECIDING_MEMBERS.has(name));
  const unmetered = decides ? (unmeteredIn(members) ?? ambiguousIn(body.text, object.members)) : undefined;
  if (unmetered !== undefined) return err(unmetered);
  const input = measure(bytes.length, messages, members.tools);
  const [newer, older] = [limitOf(members.max_completion_tokens), limitOf(members.max_tokens)];
  return ok({
    body,
    model,
    hourInCache,
    stream: stream === true,
    streamOptions: isMap(options) ? object.members.findLast(({ name }) => name === 'stream_options') : undefined,
    includeUsage: isMap(options) && options.include_usage === true,
    n: isCount(n) ? n : 1,
    limits: { max_completion_tokens: newer, max_tokens: older },
    limit: newer === undefined || older === undefined ? (newer ?? older) : Math.max(newer, older),
    minOutput: minOutputOf(members.thinking),
    input,
    webSearches: decides ? webSearchesIn(members) : undefined,
    mayHaveAudio: input.media.count > 0 && hasAudio(messages),
    store: false,
    stored: storedIn(input),
  });
}

/** The refusal of a message with calls that are no objects. */
function wrongCallsIn(messages: ReadonlyArray<unknown>): Result<never, Failure> | undefined {
  for (const message of messages) {
    const wrong = isMap(message) ? notObjectsIn(message, 'tool_calls') : undefined;
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** The stored state of a prompt. Most prompts refer to none. */
function storedIn({ hasStoredFile, hasStoredSpeech }: PromptSize): StoredState {
  if (!hasStoredFile && !hasStoredSpeech) return NOTHING_STORED;
  const [file, speech] = [hasStoredFile, hasStoredSpeech].map((has) => (has ? 'messages' : undefined));
  return { ...NOTHING_STORED, file, speech };
}

function limitOf(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

// Chat completion requests: whether a body is one, and the members that decide its maximum cost. The provider reads the others.
import type { Failure } from '#core/failure.ts';
import { parseJson } from '#core/json.ts';
import { hasTooManyValues, MAX_VALUES } from '#core/json-limits.ts';
import { err, ok, type Result } from '#core/result.ts';
import { type Member, membersOf, type ObjectText } from './json-splice.ts';
import { type Measure, measure } from './prompt.ts';
import { ambiguousIn, DECIDING, foldCase, unmeteredIn, type WebSearches, webSearchesIn } from './unmetered-features.ts';

export interface Chat {
  /** The body as it was sent, and the same as text. */
  readonly bytes: Uint8Array;
  readonly text: string;
  readonly object: ObjectText;
  readonly model: string;
  readonly stream: boolean;
  /** `stream_options` as sent, where it is an object. */
  readonly streamOptions: Member | undefined;
  /** The client wants the usage chunk for itself. */
  readonly includeUsage: boolean;
  /** Answers that the client asks for. */
  readonly n: number;
  /** The client's limits, by the names it used. */
  readonly limits: Readonly<Record<LimitName, number | undefined>>;
  /** The larger of them. */
  readonly limit: number | undefined;
  readonly input: Measure;
  /** Web searches that the request asks its provider for. */
  readonly webSearches: WebSearches | undefined;
  /** Members that must not reach a provider: `Model` beside `model` means `model` to parsers that ignore case. */
  readonly lookalikes: ReadonlySet<string>;
}

export type LimitName = 'max_completion_tokens' | 'max_tokens';
export const LIMIT_NAMES: ReadonlyArray<LimitName> = ['max_completion_tokens', 'max_tokens'];

const READ = ['model', 'messages', 'stream', 'stream_options', 'n'];
/** Members that the gateway acts on: repeated, the last one counts (as JSON.parse has it) and the others do not reach the provider. */
export const OWN_MEMBERS: ReadonlySet<string> = new Set([...READ, ...DECIDING, ...LIMIT_NAMES]);

/** The maximum number of answers: more than providers give, so that an absurd number does not become money. */
const MAX_ANSWERS = 1024;

/** Validates a body. A wrong type in a member that decides the cost is refused here, because providers read it in different ways. */
export function toChat(bytes: Uint8Array): Result<Chat, Failure> {
  if (hasTooManyValues(bytes)) return invalid(`The request body holds more than ${MAX_VALUES} values. Send fewer.`);
  const text = textIn(bytes);
  const body = parseJson(text);
  if (!isRecord(body)) return invalid('The request body must be one JSON object in UTF-8.');
  const { model, messages, stream, stream_options: options, n } = body;
  if (typeof model !== 'string' || model === '') return invalid('"model" must be the name of a model.', 'model');
  if (!Array.isArray(messages)) return invalid('"messages" must be an array.', 'messages');
  if (!absent(stream) && typeof stream !== 'boolean') return invalid('"stream" must be true or false.', 'stream');
  if (!absent(options) && !isRecord(options)) return invalid('"stream_options" must be an object.', 'stream_options');
  if (!absent(n) && !(isCount(n) && n <= MAX_ANSWERS)) {
    return invalid(`"n" must be a whole number from 1 to ${MAX_ANSWERS}.`, 'n');
  }
  const wrong = LIMIT_NAMES.find((name) => !absent(body[name]) && !isCount(body[name]));
  // Zero is no limit to providers that test the member for truth.
  if (wrong !== undefined) return invalid(`"${wrong}" must be a whole number from 1.`, wrong);
  const object = membersOf(text);
  const decides = object.members.some(({ name }) => DECIDING.has(name));
  const unmetered = decides ? (unmeteredIn(body) ?? ambiguousIn(text, object.members)) : undefined;
  if (unmetered !== undefined) return err(unmetered);
  const [newer, older] = [limitOf(body.max_completion_tokens), limitOf(body.max_tokens)];
  return ok({
    bytes,
    text,
    object,
    model,
    stream: stream === true,
    streamOptions: isRecord(options) ? object.members.findLast(({ name }) => name === 'stream_options') : undefined,
    includeUsage: isRecord(options) && options.include_usage === true,
    n: isCount(n) ? n : 1,
    limits: { max_completion_tokens: newer, max_tokens: older },
    limit: newer === undefined || older === undefined ? (newer ?? older) : Math.max(newer, older),
    input: measure(bytes.length, messages, body.tools),
    webSearches: decides ? webSearchesIn(body) : undefined,
    lookalikes: lookalikesIn(object, OWN_MEMBERS),
  });
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of the bytes; empty, which is no JSON, where they are not UTF-8. */
function textIn(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return '';
  }
}

function limitOf(value: unknown): number | undefined {
  return isCount(value) ? value : undefined;
}

/** Names of members that are equal to one of these when case is ignored. */
export function lookalikesIn({ members }: ObjectText, own: ReadonlySet<string>): ReadonlySet<string> {
  const lookalikes = new Set<string>();
  for (const { name } of members) if (!own.has(name) && own.has(foldCase(name))) lookalikes.add(name);
  return lookalikes;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

function absent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function invalid(message: string, param?: string): Result<never, Failure> {
  return err({ code: 'invalid_request', message, ...(param === undefined ? {} : { param }) });
}

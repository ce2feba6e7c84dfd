// Requests of clients: the check of a body, and the members that decide its maximum cost. The provider reads the
// others.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { countIn, listOf, member, parseJson } from '#core/json/json.ts';
import { LONG_TEXT } from '#core/json/json-limits.ts';
import { isMap } from '#crds/validation/json-shapes.ts';
import { type EncodedText, type Member, membersOf, type ObjectText } from './json/json-splice.ts';
import { asksForHourInCache, type HigherRates } from './prompt/higher-rates.ts';
import type { PromptSize } from './prompt/prompt.ts';
import type { StoredState } from './prompt/stored-state.ts';
import { foldName, type Members, type WebSearches } from './prompt/unmetered-features.ts';

export interface ModelRequest extends HigherRates {
  readonly body: RequestBody;
  readonly model: string;
  readonly stream: boolean;
  /** The member `stream_options`, if it is an object. */
  readonly streamOptions: Member | undefined;
  /** The client requests the usage chunk. */
  readonly includeUsage: boolean;
  /** The number of answers. */
  readonly n: number;
  /** The client's limits of an answer, by the names that the client used. */
  readonly limits: Readonly<Record<string, number | undefined>>;
  /** The largest of these limits; zero: the reply has no tokens of its own; undefined: no limit. */
  readonly limit: number | undefined;
  /** Tokens of the shortest useful answer. */
  readonly minOutput: number;
  readonly input: PromptSize;
  /** The client asks for a larger context window than the model's usual one. */
  readonly hasLargerWindow?: boolean;
  /** Web searches of the provider that the client requests. */
  readonly webSearches: WebSearches | undefined;
  /** References to state that a provider stored. */
  readonly stored: StoredState;
  /** The `store` for providers; absent: as the client wrote it. */
  readonly store?: false | undefined;
  /** The conversation, if providers store parts of it; absent: every model entry of the model may answer. */
  readonly affinity?: Affinity;
  /** The query and the headers that a provider of the same API gets unchanged; absent: none. */
  readonly forwardedHead?: ForwardedHead;
}

export interface Affinity {
  /**
   * The name of the conversation, the same in all its requests. It decides the order in which model entries are tried.
   */
  readonly conversation: string;
  /** The request continues with parts that only one account can read: no other model entry is tried. */
  readonly isBound: boolean;
  /** The mark of the model entry that created these parts; absent: they have no mark, and the conversation decides. */
  readonly modelEntryMark?: string | undefined;
}

export interface ForwardedHead {
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Bytes of memory for a member without its name. */
const MEMBER = 256;
const NO_BYTES = new Uint8Array(0);
const NO_MEMBERS: ObjectText = { open: 0, members: [] };

/** The body of a request, as the client sent it. A class, because each request has one: methods are shared. */
export class RequestBody implements EncodedText {
  readonly isAscii: boolean;
  #object: ObjectText;
  #bytes: Uint8Array;
  #text: string | undefined;

  constructor(bytes: Uint8Array, text: string) {
    this.#bytes = bytes;
    this.#text = text;
    this.isAscii = text.length === bytes.length;
    this.#object = membersOf(text);
  }

  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /** The members with their offsets in the text. */
  get object(): ObjectText {
    return this.#object;
  }

  /** The approximate memory of the members, in bytes. */
  get memberBytes(): number {
    return this.#object.members.reduce((sum, { name }) => sum + MEMBER + 2 * name.length, 0);
  }

  get text(): string {
    this.#text ??= textIn(this.#bytes);
    return this.#text;
  }

  /** Releases a long text until it is read again. Called before every wait. */
  releaseText(): void {
    if (this.#bytes.length > LONG_TEXT) this.#text = undefined;
  }

  /** Releases everything, because the reply has begun. */
  release(): void {
    this.#bytes = NO_BYTES;
    this.#text = '';
    this.#object = NO_MEMBERS;
  }
}

/** A body that is one JSON object with a model. */
export interface ParsedBody extends Pick<ModelRequest, 'body' | 'model' | 'hourInCache'> {
  readonly members: Members;
}

export function readBody(bytes: Uint8Array): Result<ParsedBody, Failure> {
  const text = textIn(bytes);
  const members = parseJson(text);
  if (!isMap(members)) return invalid('The request body must be one JSON object in UTF-8.');
  const { model } = members;
  if (typeof model !== 'string' || model === '')
    return invalid('"model" must be the name of a model. GET /models lists the names.', 'model');
  return ok({ body: new RequestBody(bytes, text), model, members, hourInCache: asksForHourInCache(text) });
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of the bytes; empty (no JSON) if they are not UTF-8. */
function textIn(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    return '';
  }
}

/** Members that affect other users of a server (vLLM): priority and id of the request, and the size of its media. */
const SERVER_MEMBERS = ['priority', 'request_id', 'mm_processor_kwargs', 'media_io_kwargs'];

/**
 * Finds names that some parser reads as one of these names. They must not reach a provider: parsers that ignore case
 * read `Model` as `model`, protocol buffers read `maxTokens` as `max_tokens`. The names in `SERVER_MEMBERS` must not
 * reach it either.
 */
export function lookalikesOf(own: ReadonlySet<string>): (object: ObjectText) => ReadonlySet<string> {
  const folded = new Set([...own, ...SERVER_MEMBERS].map(foldName));
  return ({ members }) => {
    const lookalikes = new Set<string>();
    for (const { name } of members) if (!own.has(name) && folded.has(foldName(name))) lookalikes.add(name);
    return lookalikes;
  };
}

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/**
 * The minimum limit of an answer. The provider refuses a limit below the budget of reasoning, which is
 * `thinking.budget_tokens` in Anthropic's dialect.
 */
export function minOutputOf(thinking: unknown): number {
  return member(thinking, 'type') === 'enabled' ? (countIn(thinking, 'budget_tokens') ?? 0) + 1 : 1;
}

/**
 * The refusal of a list with an element that is no object. No API has such a list, and its translation would be many
 * times longer.
 */
export function notObjectsIn(members: Members, ...names: ReadonlyArray<string>): Result<never, Failure> | undefined {
  const wrong = names.find((name) => !listOf(members[name]).every(isMap));
  return wrong === undefined ? undefined : invalid(`"${wrong}" must be an array of objects.`, wrong);
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

export function invalid(message: string, param?: string): Result<never, Failure> {
  return err({ code: 'invalid_request', message, ...(param === undefined ? {} : { param }) });
}

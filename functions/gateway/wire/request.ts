// Requests of clients: whether a body is one, and the members that decide its maximum cost. The provider reads the
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
  /** `stream_options` as sent, where it is an object. */
  readonly streamOptions: Member | undefined;
  /** The client wants the usage chunk for itself. */
  readonly includeUsage: boolean;
  /** Answers that the client asks for. */
  readonly n: number;
  /** The client's limits of an answer, by the names it used. */
  readonly limits: Readonly<Record<string, number | undefined>>;
  /** The largest of them; zero: the reply has no tokens of its own. */
  readonly limit: number | undefined;
  /** Tokens of the shortest answer of use. */
  readonly minOutput: number;
  readonly input: PromptSize;
  /** The client asks for a larger context window than the model's usual one. */
  readonly hasLargerWindow?: boolean;
  /** Web searches that the request asks its provider for. */
  readonly webSearches: WebSearches | undefined;
  /** References to what its provider has stored. */
  readonly stored: StoredState;
  /** The `store` that providers get; absent: as the client wrote it. */
  readonly store?: false | undefined;
  /** The conversation, if providers keep parts of it; absent: each entry of the model may answer. */
  readonly affinity?: Affinity;
  /** Parts of the request beside its body that reach a provider of the same API as they are; absent: none. */
  readonly forwardedHead?: ForwardedHead;
}

export interface Affinity {
  /** The same for all requests of a conversation that name one; the entries are tried in the same order for it. */
  readonly conversation: string;
  /** The request continues with parts that one account alone can read: no other entry is tried. */
  readonly isBound: boolean;
  /** The mark of the entry that made those parts; absent: they have none, and the conversation decides. */
  readonly entryMark?: string | undefined;
}

export interface ForwardedHead {
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Bytes of a member without its name. */
const MEMBER = 256;
const NO_BYTES = new Uint8Array(0);
const NO_MEMBERS: ObjectText = { open: 0, members: [] };

/** The body as it was sent. A class, because one is made for each request: methods are shared. */
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

  /** Offsets in the text. */
  get object(): ObjectText {
    return this.#object;
  }

  /** About how much memory the members take. */
  get memberBytes(): number {
    return this.#object.members.reduce((sum, { name }) => sum + MEMBER + 2 * name.length, 0);
  }

  get text(): string {
    this.#text ??= textIn(this.#bytes);
    return this.#text;
  }

  /** Gives up a long text until it is read again. Called before every wait. */
  releaseText(): void {
    if (this.#bytes.length > LONG_TEXT) this.#text = undefined;
  }

  /** Gives up everything: the request has its reply. */
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
  if (typeof model !== 'string' || model === '') return invalid('"model" must be the name of a model.', 'model');
  return ok({ body: new RequestBody(bytes, text), model, members, hourInCache: asksForHourInCache(text) });
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

/**
 * Members by which a request reaches into a server that many share (vLLM): its place before others, its name among
 * theirs, and how large its media become.
 */
const SERVER_MEMBERS = ['priority', 'request_id', 'mm_processor_kwargs', 'media_io_kwargs'];

/**
 * Finds names of members that some parser takes for one of these. They must not reach a provider: `Model` means `model`
 * to parsers that ignore case, `maxTokens` means `max_tokens` to those of protocol buffers. Nor must those that are the
 * server's.
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

/** A limit below the budget of thinking is refused by the provider. */
export function minOutputOf(thinking: unknown): number {
  return member(thinking, 'type') === 'enabled' ? (countIn(thinking, 'budget_tokens') ?? 0) + 1 : 1;
}

/** A list of these members with an element that is no object, which no API has: few letters would become long ones. */
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

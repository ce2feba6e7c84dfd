// Tokens of a prompt, as a maximum and as an estimate, without a tokenizer (LEDGER 9).
import { isObject, listOf, member, textOf } from '#core/json/json.ts';
import { addMedium, fileIn, isPicture, type Media, type Medium, NO_MEDIA, PICTURE, USUAL_MEDIA } from './media.ts';
import { refersToFile } from './stored-state.ts';

export interface Measure {
  /** Tokens of the text at most, one for each byte, and those that providers add. */
  readonly max: bigint;
  /** About how many tokens the text has: one for three bytes, never zero. */
  readonly estimate: number;
  /** Prompts, each of which has the model's whole context window. */
  readonly prompts: number;
  /** Pictures, sounds and files. */
  readonly media: Media;
  /** Parts refer to a file that the provider keeps; messages, to speech of an earlier answer. */
  readonly hasStoredFile?: boolean;
  readonly hasStoredSpeech?: boolean;
}

/**
 * Tokens that providers add to a prompt with tools, so that the model knows how to call them: Anthropic some 300 to
 * 700.
 */
const MAX_FOR_TOOLS = 1_000;
const BYTES_PER_TOKEN = 3;
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal']);
/** Members in which parts of these types keep their media. Parts of other types count whole, and as a file on top. */
const MEDIA_PARTS: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'audio_url', 'video_url', 'file']);
/** Data URLs of other types are text, or may be. */
const MAY_BE_TEXT = /^\s*data:(?!image\/|audio\/|video\/|application\/(pdf|zip|msword|vnd\.))/i;
const TEXT_FILE = /^\s*data:text\//i;

/** About how many tokens the prompt has, media at a usual size: for rates, and for counts that cost nothing. */
export function usualTokens({ estimate, media }: Measure): number {
  return estimate + media.count * USUAL_MEDIA;
}

/** A part of a prompt, as far as it is not the text that it is written in. */
export interface Part {
  /** Absent: it is text. */
  readonly medium?: Medium | undefined;
  /** Bytes of it that are encoded media. */
  readonly bytes?: number;
  /** Lists of parts, or single parts, inside of it. */
  readonly inner?: ReadonlyArray<unknown>;
  /** The part refers to a file that the provider keeps. */
  readonly isStoredFile?: boolean;
}

/** Measures a body of any API. `read`: reads one element of the lists of parts. */
export function measureParts(
  bodyBytes: number,
  { lists, tools }: { readonly lists: ReadonlyArray<unknown>; readonly tools: ReadonlyArray<unknown> },
  read: (part: unknown) => Part,
): Measure {
  let mediaBytes = 0;
  let media = NO_MEDIA;
  let hasStoredFile = false;
  const left = [...lists];
  while (left.length > 0) {
    for (const part of partsOf(left.pop())) {
      const { medium, bytes = 0, inner = [], isStoredFile = false } = read(part);
      hasStoredFile ||= isStoredFile;
      for (const one of inner) if (isObject(one)) left.push(one);
      mediaBytes += bytes;
      if (medium !== undefined) media = addMedium(media, medium);
    }
  }
  // UTF-16 units are never more than bytes, so what is left is never less than the text.
  const text = Math.max(0, bodyBytes - mediaBytes);
  const max = BigInt(text + tools.length * MAX_FOR_TOOLS);
  return { max, estimate: Math.max(1, estimateTokens(text)), prompts: 1, media, hasStoredFile };
}

/** The parts of a content: a list, or one that stands alone. */
export function partsOf(content: unknown): ReadonlyArray<unknown> {
  return isObject(content) && !Array.isArray(content) ? [content] : listOf(content);
}

/**
 * Measures a body with these messages of chat completions. The text of media (base64, addresses) does not count as
 * text.
 */
export function measure(bodyBytes: number, messages: ReadonlyArray<unknown>, tools: unknown): Measure {
  const lists = messages.map((message) => member(message, 'content'));
  const measured = measureParts(bodyBytes, { lists, tools: listOf(tools).slice(0, 1) }, toPart);
  // A spoken answer is an id of a few bytes in the request, and costs the same as before.
  const spoken = messages.filter((message) => isObject(member(message, 'audio'))).length;
  if (spoken === 0) return measured;
  let { media } = measured;
  for (let answer = 0; answer < spoken; answer += 1) media = addMedium(media, fileIn());
  return { ...measured, media, hasStoredSpeech: true };
}

const TEXT: Part = {};

function toPart(part: unknown): Part {
  if (!isObject(part)) return TEXT;
  // The content of a part (the result of a tool, say) is a list of parts.
  const inner = [member(part, 'content')];
  const type = mediaOf(part);
  if (type === undefined) return { inner };
  const holder = MEDIA_PARTS.has(type) ? member(part, type) : undefined;
  const isStoredFile = refersToFile(part) || refersToFile(holder);
  const encoded = encodedIn(holder);
  const bytes = encoded.reduce((sum, text) => sum + (MAY_BE_TEXT.test(text) ? 0 : text.length), 0);
  if (type === 'image_url' && encoded.every(isPicture)) return { medium: PICTURE.openai, bytes, inner, isStoredFile };
  const isText = encoded.length > 0 && encoded.every((text) => TEXT_FILE.test(text));
  const medium = isText ? undefined : fileIn(encoded);
  return { medium, bytes, inner, isStoredFile };
}

/** The growth from `1e20` to the 21 digits that JavaScript writes in its place. */
const MAX_GROWTH = 18;

/** Bytes by which the text can grow when it is parsed and written again: by numbers with an exponent, at most. */
export function growthOf(text: string): number {
  let exponents = 0;
  // A list of all places would take many times the room of the text.
  for (let at = 1; at < text.length; at += 1) {
    const isExponent = (text.charCodeAt(at) | 0x20) === 0x65 && isDigit(text.charCodeAt(at - 1));
    if (isExponent) exponents += 1;
  }
  return exponents * MAX_GROWTH;
}

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** The kind of a part that is no text. A part without a type has the kind of its content: some providers read it so. */
function mediaOf(part: object): string | undefined {
  const type = member(part, 'type');
  if (typeof type === 'string') return TEXT_PARTS.has(type) ? undefined : type;
  const carried = Object.keys(part).filter((name) => name !== 'type' && !TEXT_PARTS.has(name));
  return carried.find((name) => MEDIA_PARTS.has(name)) ?? carried[0];
}

/** Estimated tokens of this many bytes of text. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/**
 * Length in UTF-8, without encoding, because every piece of a stream is measured; each half of a surrogate pair counts
 * two.
 */
export function bytesIn(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/**
 * `{"image_url": "…"}`, `{"image_url": {"url": "…"}}`, `{"input_audio": {"data": "…"}}`, `{"file": {"file_data":
 * "…"}}`.
 */
function encodedIn(media: unknown): ReadonlyArray<string> {
  if (typeof media === 'string') return [media];
  return ['url', 'data', 'file_data', 'file_url'].flatMap((name) => textOf(member(media, name)) ?? []);
}

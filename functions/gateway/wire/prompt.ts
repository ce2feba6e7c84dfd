// Tokens of a prompt, as a maximum and as an estimate, without a tokenizer (LEDGER 9).
import { listOf, member, textOf } from '#core/json.ts';
import { refersToFile } from './stored-state.ts';

export interface Measure {
  /** Upper bound: a token is at least one byte of text; a picture, a sound or a file counts `MAX_PER_PART`. */
  readonly max: bigint;
  /** The same for providers of another dialect, which count pictures in their own way; absent: no more. */
  readonly maxElsewhere?: bigint;
  /** Prompts, each of which has the model's whole context window. */
  readonly prompts: number;
  /** No picture, sound or file is in it. */
  readonly textOnly: boolean;
  /** Parts refer to a file that the provider keeps; messages, to speech of an earlier answer. */
  readonly hasStoredFile?: boolean;
  readonly hasStoredSpeech?: boolean;
  /** The charge, in tokens, of a prompt that the provider did not count: about one token for three bytes. Never zero. */
  readonly estimate: number;
}

export const MAX_PER_PART = 100_000;
/** The largest context window that is known, for prompts that the provider completes with what only it knows. */
export const LARGEST_WINDOW = 1_050_000n;
/** Tokens that providers add to a prompt with tools, so that the model knows how to call them: Anthropic some 300 to 700. */
const MAX_FOR_TOOLS = 1_000;
const ESTIMATE_PER_PART = 1_000;
const BYTES_PER_TOKEN = 3;
/** The bytes of text that one picture counts as. */
export const BYTES_PER_PICTURE = ESTIMATE_PER_PART * BYTES_PER_TOKEN;
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal']);
/** Members in which parts of these types keep their media. Parts of other types count whole, and as media on top. */
const MEDIA_PARTS: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'audio_url', 'video_url', 'file']);
/** Data URLs of other types are text, or may be. */
const TEXT_FILE = /^\s*data:(?!image\/|audio\/|video\/|application\/(pdf|zip|msword|vnd\.))/i;

/** Measures a body with these messages. The text of media (base64, addresses) does not count as text. */
export function measure(bodyBytes: number, messages: ReadonlyArray<unknown>, tools: unknown): Measure {
  let parts = 0;
  let mediaBytes = 0;
  let hasStoredFile = false;
  let hasStoredSpeech = false;
  // The content of a part (the result of a tool, say) is read like a message.
  const holders = [...messages];
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    const spoken = member(holder, 'audio');
    // A spoken answer is an id of a few bytes in the request, and costs the same as before.
    if (typeof spoken === 'object' && spoken !== null) {
      parts += 1;
      hasStoredSpeech = true;
    }
    for (const part of listOf(member(holder, 'content'))) {
      if (listOf(member(part, 'content')).length > 0) holders.push(part);
      const media = mediaOf(part);
      if (media === undefined) continue;
      parts += 1;
      const holder = MEDIA_PARTS.has(media) ? member(part, media) : undefined;
      mediaBytes += mediaIn(holder);
      hasStoredFile ||= refersToFile(part) || refersToFile(holder);
    }
  }
  // UTF-16 units are never more than bytes, so what is left is never less than the text.
  const text = Math.max(0, bodyBytes - mediaBytes);
  return {
    max: BigInt(text + parts * MAX_PER_PART + (listOf(tools).length > 0 ? MAX_FOR_TOOLS : 0)),
    prompts: 1,
    textOnly: parts === 0,
    ...{ hasStoredFile, hasStoredSpeech },
    estimate: Math.max(1, Math.ceil(text / BYTES_PER_TOKEN) + parts * ESTIMATE_PER_PART),
  };
}

/** A part of a prompt, as far as it is not the text that it is written in. */
export interface Part {
  /** Bytes of it that are encoded media, and the tokens that stand for them at most, here and in another dialect; absent: it is text. */
  readonly media?: { readonly bytes: number; readonly maxTokens: number; readonly maxElsewhere?: number };
  /** Lists of parts inside of it. */
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
  let maxTokens = 0;
  let elsewhere = 0;
  let count = 0;
  let hasStoredFile = false;
  const left = [...lists];
  for (let list = left.pop(); list !== undefined; list = left.pop()) {
    for (const part of listOf(list)) {
      const { media, inner = [], isStoredFile = false } = read(part);
      hasStoredFile ||= isStoredFile;
      for (const one of inner) if (Array.isArray(one)) left.push(one);
      if (media === undefined) continue;
      count += 1;
      mediaBytes += media.bytes;
      maxTokens += media.maxTokens;
      elsewhere += media.maxElsewhere ?? media.maxTokens;
    }
  }
  const text = Math.max(0, bodyBytes - mediaBytes);
  const added = text + tools.length * MAX_FOR_TOOLS;
  return {
    max: BigInt(added + maxTokens),
    maxElsewhere: BigInt(added + elsewhere),
    prompts: 1,
    textOnly: count === 0,
    hasStoredFile,
    estimate: Math.max(1, Math.ceil(text / BYTES_PER_TOKEN) + count * ESTIMATE_PER_PART),
  };
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
function mediaOf(part: unknown): string | undefined {
  if (typeof part !== 'object' || part === null) return undefined;
  const type = member(part, 'type');
  if (typeof type === 'string') return TEXT_PARTS.has(type) ? undefined : type;
  const carried = Object.keys(part).filter((name) => name !== 'type' && !TEXT_PARTS.has(name));
  return carried.find((name) => MEDIA_PARTS.has(name)) ?? carried[0];
}

/** Estimated tokens of this many bytes of text. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** Length in UTF-8, without encoding, because every piece of a stream is measured; each half of a surrogate pair counts two. */
export function bytesIn(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** `{"image_url": "…"}`, `{"image_url": {"url": "…"}}`, `{"input_audio": {"data": "…"}}`, `{"file": {"file_data": "…"}}`. */
function mediaIn(media: unknown): number {
  if (typeof media === 'string') return encodedIn(media);
  const texts = ['url', 'data', 'file_data'].map((name) => textOf(member(media, name)) ?? '');
  return texts.reduce((sum, text) => sum + encodedIn(text), 0);
}

/** Bytes of encoded media. A text file counts as text, however it is wrapped. */
function encodedIn(value: string): number {
  return TEXT_FILE.test(value) ? 0 : value.length;
}

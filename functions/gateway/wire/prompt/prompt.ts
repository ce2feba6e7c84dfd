// Tokens of a prompt, as a maximum and as an estimate, without a tokenizer (LEDGER 9).
import { isObject, listOf } from '#core/json/json.ts';
import { addMedium, type Media, type Medium, NO_MEDIA, USUAL_MEDIA } from './media.ts';

export interface PromptSize {
  /** Tokens of the text at most, one for each byte, and those that providers add. */
  readonly maxTokens: bigint;
  /** About how many tokens the text has: one for three bytes, never zero. */
  readonly estimatedTokens: number;
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
/** About how many tokens the prompt has, media at a usual size: for rates, and for counts that cost nothing. */
export function usualTokens({ estimatedTokens, media }: PromptSize): number {
  return estimatedTokens + media.count * USUAL_MEDIA;
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

/**
 * Measures a body of any API: the text of media (base64, addresses) does not count as text. `read`: reads one element of
 * the lists of parts.
 */
export function measureParts(
  bodyBytes: number,
  { lists, tools }: { readonly lists: ReadonlyArray<unknown>; readonly tools: ReadonlyArray<unknown> },
  read: (part: unknown) => Part,
): PromptSize {
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
  const maxTokens = BigInt(text + tools.length * MAX_FOR_TOOLS);
  return { maxTokens, estimatedTokens: Math.max(1, estimateTokens(text)), prompts: 1, media, hasStoredFile };
}

/** The parts of a content: a list, or one that stands alone. */
export function partsOf(content: unknown): ReadonlyArray<unknown> {
  return isObject(content) && !Array.isArray(content) ? [content] : listOf(content);
}

/** The growth from `1e20` to the 21 digits that JavaScript writes in its place. */
const MAX_GROWTH = 18;
/** The growth of a tool, a call or a part: each dialect writes names and types around it that the other has not. */
const MAX_OF_OBJECT = 40;

/**
 * Bytes by which the text can grow when it is parsed and written in the other dialect, at most: by numbers with an
 * exponent, which may also be in a text (arguments of a call), and by its objects.
 */
export function growthOf(text: string): number {
  let growth = 0;
  let inText = false;
  // A list of all places would take many times the room of the text.
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) inText = !inText;
    else if (unit === BACKSLASH && inText) at += 1;
    else if (unit === OPEN_BRACE && !inText) growth += MAX_OF_OBJECT;
    else if ((unit | 0x20) === LETTER_E && isDigit(text.charCodeAt(at - 1))) growth += MAX_GROWTH;
  }
  return growth;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const LETTER_E = 0x65;

function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** An estimate of tokens as that of a text with so many tokens for each byte. */
export function toDenseEstimate(estimate: number, tokensPerByte: number): number {
  return Math.ceil(estimate * BYTES_PER_TOKEN * tokensPerByte);
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

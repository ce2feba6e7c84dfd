// The size of a prompt in tokens, as a maximum and as an estimate, without a tokenizer (LEDGER 9).
import { isObject, listOf } from '#core/json/json.ts';
import { addMedium, type Media, type Medium, NO_MEDIA, USUAL_MEDIA } from './media.ts';

export interface PromptSize {
  /** The maximum tokens of the text: one for each byte, and those that providers add. */
  readonly maxTokens: bigint;
  /** The estimated tokens of the text: one for three bytes, never zero. */
  readonly estimatedTokens: number;
  /** The number of prompts; each has a context window of its own. */
  readonly prompts: number;
  /** Images, audio and files. */
  readonly media: Media;
  /** A part refers to a file that the provider stores; a message refers to speech of an earlier answer. */
  readonly hasStoredFile?: boolean;
  readonly hasStoredSpeech?: boolean;
}

/** The maximum tokens that a provider adds to a prompt to explain its tools (Anthropic: some 300 to 700). */
const MAX_FOR_TOOLS = 1_000;
const BYTES_PER_TOKEN = 3;
/** The expected tokens of a prompt, with media of a usual size: for rates and for free counts. */
export function usualTokens({ estimatedTokens, media }: PromptSize): number {
  return estimatedTokens + media.count * USUAL_MEDIA;
}

/** A part of a prompt, except its text. */
export interface Part {
  /** The media of the part; absent: the part is text. */
  readonly medium?: Medium | undefined;
  /** Bytes of the part that are encoded media. */
  readonly bytes?: number;
  /** Lists of parts, or single parts, inside of the part. */
  readonly inner?: ReadonlyArray<unknown>;
  /** The part refers to a file that the provider stores. */
  readonly isStoredFile?: boolean;
}

/**
 * The size of a body of any API. Encoded media and addresses do not count as text. `read`: reads one element of the
 * lists of parts.
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
  // A text never has more UTF-16 units than bytes, so the rest is at least the text.
  const text = Math.max(0, bodyBytes - mediaBytes);
  const maxTokens = BigInt(text + tools.length * MAX_FOR_TOOLS);
  return { maxTokens, estimatedTokens: Math.max(1, estimateTokens(text)), prompts: 1, media, hasStoredFile };
}

/** The parts of a content: a list, or a single part. */
export function partsOf(content: unknown): ReadonlyArray<unknown> {
  return isObject(content) && !Array.isArray(content) ? [content] : listOf(content);
}

/** The maximum growth of a number: `1e20` becomes 21 digits in JavaScript. */
const MAX_GROWTH = 18;
/** The maximum growth of a tool, a call or a part: each dialect writes other names and types around it. */
const MAX_OF_OBJECT = 40;

/**
 * The maximum bytes by which a text grows when it is parsed and written in the other dialect: by numbers with an
 * exponent, also inside a text (arguments of a call), and by objects.
 */
export function growthOf(text: string): number {
  let growth = 0;
  let inText = false;
  // A loop, because a list of all places would take many times the memory of the text.
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

/** The estimate for a text with this number of tokens for each byte, in place of the usual one. */
export function toDenseEstimate(estimate: number, tokensPerByte: number): number {
  return Math.ceil(estimate * BYTES_PER_TOKEN * tokensPerByte);
}

/** Estimated tokens of this many bytes of text. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/**
 * The length in UTF-8, without encoding, because every piece of a stream is measured. Each half of a surrogate pair has
 * two bytes.
 */
export function bytesIn(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) bytes += unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

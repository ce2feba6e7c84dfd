// How many tokens can this prompt be, at most and about? Without a tokenizer (LEDGER 9).

export interface Measure {
  /** Upper bound: a token is at least one byte of text; a picture, a sound or a file counts `MOST_PER_PART`. */
  readonly most: bigint;
  /** No picture, sound or file is in it. */
  readonly textOnly: boolean;
  /** What is charged for a prompt that nobody counted: about a token for three bytes. Never zero. */
  readonly estimate: number;
}

const MOST_PER_PART = 100_000;
/** What providers add to a prompt with tools so that the model knows how to call them: Anthropic some 300 to 700 tokens. */
const MOST_FOR_TOOLS = 1_000;
const ESTIMATE_PER_PART = 1_000;
const BYTES_PER_TOKEN = 3;
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal']);
/** Where a part of this type keeps what is not text. Parts of other types count whole, and as media on top. */
const MEDIA_PARTS: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'audio_url', 'video_url', 'file']);

/** Measures a body of so many bytes with these messages. The text of media (base64, addresses) does not count as text. */
export function measure(bodyBytes: number, messages: ReadonlyArray<unknown>, tools: unknown): Measure {
  let parts = 0;
  let mediaBytes = 0;
  for (const part of messages.flatMap(contentOf)) {
    const type = memberOf(part, 'type');
    if (typeof type !== 'string' || TEXT_PARTS.has(type)) continue;
    parts += 1;
    if (MEDIA_PARTS.has(type)) mediaBytes += mediaIn(memberOf(part, type));
  }
  // UTF-16 units are never more than bytes, so what is left is never less than the text.
  const text = Math.max(0, bodyBytes - mediaBytes);
  return {
    most: BigInt(text + parts * MOST_PER_PART + (hasSome(tools) ? MOST_FOR_TOOLS : 0)),
    textOnly: parts === 0,
    estimate: Math.max(1, Math.ceil(text / BYTES_PER_TOKEN) + parts * ESTIMATE_PER_PART),
  };
}

/** About how many tokens so much text of a reply is. */
export function estimateOutput(characters: number): number {
  return Math.ceil(characters / BYTES_PER_TOKEN);
}

function hasSome(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}

function contentOf(message: unknown): ReadonlyArray<unknown> {
  const content = memberOf(message, 'content');
  return Array.isArray(content) ? content : [];
}

/** `{"image_url": "…"}`, `{"image_url": {"url": "…"}}`, `{"input_audio": {"data": "…"}}`, `{"file": {"file_data": "…"}}`. */
function mediaIn(media: unknown): number {
  if (typeof media === 'string') return media.length;
  return ['url', 'data', 'file_data'].reduce((sum, name) => {
    const value = memberOf(media, name);
    return sum + (typeof value === 'string' ? value.length : 0);
  }, 0);
}

function memberOf(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? Reflect.get(of, name) : undefined;
}

// The output of a message or a delta: text, reasoning, refusals, tool calls, audio, images, and all else that
// providers bill as output.
import { listOf, member, textOf } from '#core/json/json.ts';
import type { OutputSize, Piece } from '../codec.ts';
import { bytesIn } from '../prompt/prompt.ts';

/** Members that contain output. */
const TEXTS = ['content', 'reasoning_content', 'reasoning', 'refusal'];
/** Members of a part whose value is no output. */
const NAMES: ReadonlySet<string> = new Set(['type', 'id', 'signature']);
/**
 * Letters of a twentieth of a second, in the only format in which audio is streamed (16 bits, 24,000 times a second,
 * in base64).
 */
const LETTERS_PER_AUDIO_TOKEN = 3200;
/** The maximum tokens of an image. Gemini bills up to 2,520, GPT some 13,300 (3,840 x 2,160, high quality). */
const MAX_IMAGE = 16_000;

/** The output of these choices in their `message` or `delta`. `deltas`: the choices with at least one token. */
export function sizeOf(
  choices: ReadonlyArray<unknown>,
  name: 'message' | 'delta',
): Pick<Piece, 'deltas' | keyof OutputSize> {
  let deltas = 0;
  let outputBytes = 0;
  let media = 0;
  for (const choice of choices) {
    const message = member(choice, name);
    const length = lengthOf(message);
    const ofMedia = audioTokensIn(message) + imagesIn(message) * MAX_IMAGE;
    // A piece of audio may have less than a token, and `deltas` may cut a stream.
    if (length > 0 || ofMedia >= 1) deltas += 1;
    outputBytes += length;
    media += ofMedia;
  }
  return { deltas, outputBytes, media };
}

/** Bytes of all texts and of tool calls. */
function lengthOf(message: unknown): number {
  let length = 0;
  for (const name of TEXTS) length += bytesOf(member(message, name));
  length += callBytesOf(member(message, 'function_call'), 'arguments');
  for (const call of listOf(member(message, 'tool_calls'))) {
    length += callBytesOf(member(call, 'function'), 'arguments') + callBytesOf(member(call, 'custom'), 'input');
  }
  return length + bytesOf(member(member(message, 'audio'), 'transcript'));
}

/** The images of a message, in its `images` and in its content. */
function imagesIn(message: unknown): number {
  return listOf(member(message, 'images')).length + listOf(member(message, 'content')).filter(isImage).length;
}

const isImage = (part: unknown): boolean => member(part, 'type') === 'image_url';

/** Estimated tokens of the message's audio. They may be fractions, because audio arrives in pieces of any length. */
function audioTokensIn(message: unknown): number {
  const data = textOf(member(member(message, 'audio'), 'data')) ?? '';
  return data.length / LETTERS_PER_AUDIO_TOKEN;
}

function callBytesOf(called: unknown, given: 'arguments' | 'input'): number {
  return bytesOf(member(called, 'name')) + bytesOf(member(called, given));
}

/** Bytes of a text, or of parts, which may contain texts and parts again (Mistral's reasoning). */
function bytesOf(content: unknown): number {
  if (typeof content === 'string') return bytesIn(content);
  if (typeof content !== 'object' || content === null) return 0;
  let bytes = 0;
  const left: unknown[] = [content];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next === 'string') bytes += bytesIn(next);
    else if (Array.isArray(next)) for (const part of next) left.push(part);
    else if (typeof next === 'object' && next !== null && !isImage(next)) {
      for (const [name, value] of Object.entries(next)) if (!NAMES.has(name)) left.push(value);
    }
  }
  return bytes;
}

/** Bytes of a value as JSON, without escapes. The value may have any depth, unlike for `JSON.stringify`. */
export function bytesOfJson(value: unknown): number {
  let bytes = 0;
  const left = [value];
  while (left.length > 0) {
    const next = left.pop();
    // Quotes or brackets, and the comma after them.
    bytes += 3;
    if (typeof next === 'string') bytes += bytesIn(next);
    else if (typeof next !== 'object' || next === null) bytes += String(next).length - 2;
    else {
      for (const [name, inner] of Object.entries(next)) {
        if (!Array.isArray(next)) bytes += bytesIn(name) + 3;
        left.push(inner);
      }
    }
  }
  return bytes;
}

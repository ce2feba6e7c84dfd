// Parts of chat messages: their size, without a tokenizer.
import { toUtf8 } from '#core/json/bytes.ts';
import { isObject, listOf, member, textOf } from '#core/json/json.ts';
import { MAX_VALUES, sizeOfJson } from '#core/json/json-limits.ts';
import { addMedium, fileIn, IMAGE, isImageAddress } from '../prompt/media.ts';
import { measureParts, type Part, type PromptSize } from '../prompt/prompt.ts';
import { refersToFile } from '../prompt/stored-state.ts';

const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal']);
/**
 * Types of parts whose media is in the member of that name. A part of another type counts whole, and also as a file.
 */
const MEDIA_PARTS: ReadonlySet<string> = new Set(['image_url', 'input_audio', 'audio_url', 'video_url', 'file']);
/** Members of media with their encoded content, or its address. */
const ENCODED_MEMBERS = ['url', 'data', 'file_data', 'file_url'];
/** Data URLs that may be text: all types except these. */
const MAY_BE_TEXT = /^\s*data:(?!image\/|audio\/|video\/|application\/(pdf|zip|msword|vnd\.))/i;
const TEXT_FILE = /^\s*data:text\//i;

export function measure(bodyBytes: number, messages: ReadonlyArray<unknown>, tools: unknown): PromptSize {
  const lists = messages.map((message) => member(message, 'content'));
  const measured = measureParts(bodyBytes, { lists, tools: listOf(tools).slice(0, 1) }, toPart);
  // A spoken answer is only a short id in the request, but costs as much as the whole speech.
  const spoken = messages.filter((message) => isObject(member(message, 'audio'))).length;
  if (spoken === 0) return measured;
  let { media } = measured;
  for (let answer = 0; answer < spoken; answer += 1) media = addMedium(media, fileIn());
  return { ...measured, media, hasStoredSpeech: true };
}

const TEXT: Part = {};

function toPart(part: unknown): Part {
  if (!isObject(part)) return TEXT;
  // The content of a part, such as the result of a tool, is a list of parts.
  const inner = [member(part, 'content')];
  const type = mediaTypeOf(part);
  if (type === undefined) return { inner };
  const holder = MEDIA_PARTS.has(type) ? member(part, type) : undefined;
  const isStoredFile = refersToFile(part) || refersToFile(holder);
  const encoded = encodedIn(holder);
  const bytes = encoded.reduce((sum, text) => sum + (MAY_BE_TEXT.test(text) ? 0 : text.length), 0);
  if (type === 'image_url' && encoded.every(isImageAddress))
    return { medium: IMAGE.openai, bytes, inner, isStoredFile };
  const isText = encoded.length > 0 && encoded.every((text) => TEXT_FILE.test(text));
  const medium = isText ? undefined : fileIn(encoded);
  return { medium, bytes, inner, isStoredFile };
}

/** The type of a part that is no text. Some providers take the type of a part from its content if it has no type. */
function mediaTypeOf(part: object): string | undefined {
  const type = member(part, 'type');
  if (typeof type === 'string') return TEXT_PARTS.has(type) ? undefined : type;
  const carried = Object.keys(part).filter((name) => name !== 'type' && !TEXT_PARTS.has(name));
  return carried.find((name) => MEDIA_PARTS.has(name)) ?? carried[0];
}

/**
 * The encoded texts of media, such as `{"image_url": "…"}`, `{"image_url": {"url": "…"}}`, `{"input_audio": {"data":
 * "…"}}`, `{"file": {"file_data": "…"}}`.
 */
function encodedIn(media: unknown): ReadonlyArray<string> {
  if (typeof media === 'string') return [media];
  const encoded: string[] = [];
  for (const name of ENCODED_MEMBERS) {
    const text = member(media, name);
    if (typeof text === 'string') encoded.push(text);
  }
  return encoded;
}

/**
 * The maximum number of JSON values in the arguments of all tool calls of one message list. Arguments are texts, so the
 * limit of a body's values does not count theirs, but a translation reads and writes each.
 */
export const MAX_ARGUMENT_VALUES = MAX_VALUES / 5;

/** Whether the messages have more than `MAX_ARGUMENT_VALUES`. */
export function hasTooManyArguments(messages: ReadonlyArray<unknown>): boolean {
  const calls = messages.flatMap((message) => listOf(member(message, 'tool_calls')));
  const values = calls.reduce<number>((sum, call) => sum + sizeOfJson(toUtf8(argumentsOf(call))).values, 0);
  return values > MAX_ARGUMENT_VALUES;
}

/** The arguments of a tool call, which are a text. */
export function argumentsOf(call: unknown): string {
  return textOf(member(member(call, 'function'), 'arguments')) ?? '';
}

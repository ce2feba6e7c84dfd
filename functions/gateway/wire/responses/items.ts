// Input items of Responses requests: their size without a tokenizer.
import { listOf, member, textOf } from '#core/json/json.ts';
import { addMedium, fileIn, IMAGE, isImageAddress } from '../prompt/media.ts';
import { measureParts, type Part, type PromptSize } from '../prompt/prompt.ts';
import { type MarkedId, refersToFile, type StoredState } from '../prompt/stored-state.ts';
import type { Members } from '../prompt/unmetered-features.ts';

/** Types of items and parts that count as text: texts, calls and their outputs. */
const TEXT_ITEM = /^(|message|reasoning|compaction|refusal|item_reference|text|.*_text|.*_call|.*_call_output)$/;
const IMAGES: ReadonlySet<string> = new Set(['input_image', 'computer_screenshot', 'image_generation_call']);
const FILES: ReadonlySet<string> = new Set(['input_file', 'input_audio']);
/** Members with encoded media. */
const ENCODED = ['image_url', 'file_data', 'file_url', 'result', 'data'];
const TEXT_FILE = /^\s*data:text/i;
const TEXT: Part = {};

export function measure(bodyBytes: number, members: Members): PromptSize {
  const tools = listOf(members.tools).slice(0, 1);
  const measured = measureParts(bodyBytes, { lists: [members.input], tools }, toPart);
  // A stored conversation counts like a file at the provider, because it may be as long.
  return usesStoredState(members) ? { ...measured, media: addMedium(measured.media, fileIn()) } : measured;
}

/** Whether the provider adds stored state to the prompt. */
function usesStoredState(members: Members): boolean {
  return referenceIn(members, isReference) !== undefined;
}

/** The stored state that a request refers to. `marked`: the ids whose marks were removed from the body. */
export function storedStateOf(members: Members, marked: ReadonlyArray<MarkedId>): StoredState {
  const known = new Set<unknown>(marked.map(({ id }) => id));
  const { store, previous_response_id: previous, input } = members;
  const unmarked = { input, previous_response_id: known.has(previous) ? undefined : previous };
  return {
    asksToStore: store === true,
    reference: referenceIn(members, isReference),
    unmarkedReference: referenceIn(
      unmarked,
      (item) => !known.has(member(item, 'id')) && (isReference(item) || isStoredCall(item)),
    ),
    ids: marked,
  };
}

/** The parameter of the first reference to a response, or to an item that `refers`. */
function referenceIn(
  { previous_response_id: previous, input }: Members,
  refers: (item: unknown) => boolean,
): string | undefined {
  if (previous !== undefined && previous !== null) return 'previous_response_id';
  const at = listOf(input).findIndex(refers);
  return at === -1 ? undefined : `input[${at}]`;
}

/** Types of calls that the client answers. The request has all of such a call. */
const CLIENT_CALL = /^(function|custom_tool|local_shell|shell|apply_patch|computer)_call$/;

/** Whether an item names a call that the provider answered itself: the provider may add the stored answer. */
function isStoredCall(item: unknown): boolean {
  const type = textOf(member(item, 'type')) ?? '';
  return textOf(member(item, 'id')) !== undefined && /_call$/.test(type) && !CLIENT_CALL.test(type);
}

/** Members with the content of an item: of messages and reasoning, and of calls and their outputs. */
const CONTENT = ['content', 'encrypted_content'];
const CALLED = ['arguments', 'output', 'input', 'action', 'operation', 'result', 'results', 'queries', 'code', 'tools'];
const CONTENT_ITEM = /^(|message|reasoning)$/;

/**
 * Whether an item is a reference: an id without any content, whatever its type. The provider replaces it by the stored
 * item.
 */
function isReference(item: unknown): boolean {
  const type = textOf(member(item, 'type')) ?? '';
  if (type === 'item_reference') return true;
  const id = member(item, 'id');
  if (id === undefined || id === null) return false;
  const isRole = type !== '' || member(item, 'role') !== undefined;
  const names = CONTENT_ITEM.test(type) ? CONTENT : [...CONTENT, ...CALLED];
  return !(isRole && names.some((name) => isWritten(member(item, name)))) && !isEmptyCall(item, type);
}

/** Whether an item is a call of a tool without arguments. */
function isEmptyCall(item: unknown, type: string): boolean {
  const written = type === 'function_call' ? member(item, 'arguments') : member(item, 'input');
  return CLIENT_CALL.test(type) && written === '' && typeof member(item, 'call_id') === 'string';
}

function isWritten(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

function toPart(item: unknown): Part {
  if (typeof item !== 'object' || item === null) return TEXT;
  const type = textOf(member(item, 'type')) ?? '';
  const inner = [member(item, 'content'), member(item, 'summary'), member(item, 'output')];
  if (TEXT_ITEM.test(type) && !IMAGES.has(type)) return { inner };
  const holders = [item, member(item, 'input_audio')];
  const isStoredFile = holders.some(refersToFile);
  if (!IMAGES.has(type) && !FILES.has(type)) return { medium: fileIn(), isStoredFile };
  const encoded = holders.flatMap(encodedIn);
  // A text file counts as text, in whatever member.
  const bytes = encoded.reduce((sum, text) => sum + (TEXT_FILE.test(text) ? 0 : text.length), 0);
  if (IMAGES.has(type) && encoded.every(isImageAddress)) return { medium: IMAGE.openai, bytes, isStoredFile };
  const isText = encoded.length > 0 && encoded.every((text) => TEXT_FILE.test(text));
  return { medium: isText ? undefined : fileIn(encoded), bytes, isStoredFile };
}

function encodedIn(holder: unknown): ReadonlyArray<string> {
  return ENCODED.flatMap((name) => textOf(member(holder, name)) ?? []);
}

// Content blocks of Messages requests: their size without a tokenizer.
import { listOf, member, textOf } from '#core/json/json.ts';
import { fileIn, IMAGE, isImageAddress } from '../prompt/media.ts';
import { measureParts, type Part, type PromptSize } from '../prompt/prompt.ts';
import { refersToFile } from '../prompt/stored-state.ts';
import type { Members } from '../prompt/unmetered-features.ts';

/** Types of blocks that count as text: texts, calls and their results. */
const TEXT_BLOCK = /^(text|thinking|redacted_thinking|tool_reference|.*tool_use|.*_result|.*_error)$/;
const TEXT: Part = {};

export function measure(bodyBytes: number, { system, messages, tools }: Members): PromptSize {
  const contents = listOf(messages).map((message) => member(message, 'content'));
  return measureParts(
    bodyBytes,
    { lists: [system, ...contents], tools: listOf(tools).filter(isDefinedByAnthropic) },
    toPart,
  );
}

/**
 * Whether Anthropic adds text for a tool: for the first tool, and for each tool that it defines, whose description is
 * not in the request.
 */
function isDefinedByAnthropic(tool: unknown, index: number): boolean {
  const type = member(tool, 'type');
  return index === 0 || (typeof type === 'string' && type !== 'custom');
}

function toPart(block: unknown): Part {
  if (typeof block !== 'object' || block === null) return TEXT;
  const type = textOf(member(block, 'type')) ?? '';
  const source = member(block, 'source');
  const inner = [member(block, 'content'), member(source, 'content')];
  const data = member(source, 'type') === 'base64' ? (textOf(member(source, 'data')) ?? '') : '';
  if (TEXT_BLOCK.test(type) || (type === 'document' && isTextSource(source))) return { inner };
  const isStoredFile = refersToFile(block) || refersToFile(source);
  const address = data === '' ? textOf(member(source, 'url')) : `data:${textOf(member(source, 'media_type'))}`;
  if (type === 'image' && isImageAddress(address ?? ''))
    return { medium: IMAGE.anthropic, bytes: data.length, isStoredFile };
  const isHere = (type === 'document' || type === 'image') && data !== '';
  return { medium: fileIn(isHere ? [data] : []), bytes: isHere ? data.length : 0, inner, isStoredFile };
}

/** Whether a source is a text, or blocks, in place of a file. */
function isTextSource(source: unknown): boolean {
  return member(source, 'type') === 'text' || member(source, 'type') === 'content';
}

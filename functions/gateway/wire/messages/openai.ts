// Messages for OpenAI's dialect: requests and replies are translated into chat completions and back.
import type { Failure } from '#core/failure/failure.ts';
import type { Result } from '#core/failure/result.ts';
import { listOf, member, parseJson, textOf } from '#core/json/json.ts';
import type { Provider } from '#core/models/providers.ts';
import type { Codec } from '../codec.ts';
import { readError, readJson, routeToOpenai } from '../dialects/openai-dialect.ts';
import { nonEmpty, type Refuse, toTranslatedCall, translate } from '../dialects/translation.ts';
import { PING } from './anthropic.ts';
import { toMessage } from './openai-reply.ts';
import { createReader } from './openai-stream.ts';
import { createEndWriter } from './stream-end.ts';

export const openai: Codec = {
  isTranslated: true,
  routeTo: (address) => routeToOpenai(address, '/chat/completions'),
  toCall: (request, recipient) => {
    const { entry, provider } = recipient.endpoint;
    const { stream, store } = request;
    const decided = { model: entry.model, maxTokens: recipient.limit.max, stream, store, provider };
    return toTranslatedCall(request, recipient, toChatBody(parseJson(request.body.text), decided));
  },
  readReply: (bytes) => toMessage(readJson(bytes).reply),
  readError,
  streams: { createReader, createEndWriter, keepAlive: PING },
};

/** The members that the gateway sets, whatever the client wrote, and the provider that decides their names. */
interface GatewayMembers {
  readonly model: string;
  readonly maxTokens: number;
  readonly stream: boolean;
  readonly store: false | undefined;
  readonly provider: Pick<Provider, 'outputLimit' | 'streamOptions' | 'storesChats' | 'refusesUser'>;
}

/**
 * The body of a chat completion, or the refusal of a part without a counterpart there. Reasoning and `cache_control`
 * are left out.
 */
export function toChatBody(
  request: unknown,
  { model, maxTokens, stream, store, provider }: GatewayMembers,
): Result<object, Failure> {
  return translate((refuse) => {
    const tools = listOf(member(request, 'tools')).flatMap((tool, index) => toTool(tool, `tools[${index}]`, refuse));
    const turns = listOf(member(request, 'messages')).flatMap((turn, index) =>
      toMessages(turn, `messages[${index}]`, refuse),
    );
    const choice = member(request, 'tool_choice');
    const isAlone = tools.length > 0 && member(choice, 'disable_parallel_tool_use') === true;
    return {
      model,
      messages: [...toSystem(request, 'system', refuse), ...turns],
      [provider.outputLimit]: maxTokens,
      tools: nonEmpty(tools),
      tool_choice: tools.length === 0 ? undefined : toToolChoice(choice),
      parallel_tool_calls: isAlone ? false : undefined,
      stop: nonEmpty(listOf(member(request, 'stop_sequences'))),
      temperature: member(request, 'temperature') ?? undefined,
      top_p: member(request, 'top_p') ?? undefined,
      user: provider.refusesUser ? undefined : toUser(request),
      store: provider.storesChats === true ? store : undefined,
      stream: stream || undefined,
      stream_options: stream && provider.streamOptions ? { include_usage: true } : undefined,
    };
  });
}

/** The maximum length of a user's name at OpenAI. */
const MAX_USER = 64;

/** The client's name for its user. Longer texts are left out: Claude Code sends one that is also about its session. */
function toUser(request: unknown): string | undefined {
  const name = textOf(member(member(request, 'metadata'), 'user_id')) ?? '';
  return name === '' || name.length > MAX_USER ? undefined : name;
}

/** Searches among tools that are loaded later. OpenAI's dialect loads all tools. */
const TOOL_SEARCH = /^tool_search_tool_/;

function toTool(tool: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const type = member(tool, 'type') ?? 'custom';
  if (TOOL_SEARCH.test(String(type))) return [];
  // Only Anthropic's models have the other types.
  if (type !== 'custom') refuse(`${at}.type`, 'must be custom for this model.');
  const [name, description] = [textOf(member(tool, 'name')), textOf(member(tool, 'description'))];
  const parameters = member(tool, 'input_schema') ?? { type: 'object', properties: {} };
  return [{ type: 'function', function: { name, description, parameters } }];
}

function toToolChoice(choice: unknown): unknown {
  const type = member(choice, 'type');
  if (type === 'tool') return { type: 'function', function: { name: member(choice, 'name') } };
  if (type === 'any') return 'required';
  return type === 'none' || type === 'auto' ? type : undefined;
}

/** The system prompt as one text, because many servers of this dialect do not accept parts there. */
function toSystem(holder: unknown, name: 'system' | 'content', refuse: Refuse, at = ''): ReadonlyArray<object> {
  const content = toTexts(member(holder, name), at + name, refuse);
  return content === '' ? [] : [{ role: 'system', content }];
}

/**
 * The messages of a turn. Results of tools are messages of their own, and come first: they answer the previous turn.
 */
function toMessages(turn: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const [role, content] = [member(turn, 'role'), member(turn, 'content')];
  if (role === 'system') return toSystem(turn, 'content', refuse, `${at}.`);
  if (role !== 'user' && role !== 'assistant')
    refuse(`${at}.role`, 'must be user, assistant or system for this model.');
  if (typeof content === 'string') return [{ role, content }];
  if (!Array.isArray(content)) refuse(`${at}.content`, 'must be a text or an array of blocks.');
  return role === 'assistant' ? toAssistantMessages(content, at, refuse) : toUserMessages(content, at, refuse);
}

const REASONING_BLOCKS: ReadonlySet<unknown> = new Set(['thinking', 'redacted_thinking']);

function toAssistantMessages(content: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const calls: object[] = [];
  let text = '';
  for (const [index, block] of listOf(content).entries()) {
    const type = member(block, 'type');
    if (type === 'text') text += textOf(member(block, 'text')) ?? '';
    else if (type === 'tool_use') calls.push(toCall(block));
    else if (!REASONING_BLOCKS.has(type)) {
      refuse(`${at}.content[${index}].type`, 'must be text, tool_use or thinking for this model.');
    }
  }
  const hasContent = text !== '' || calls.length > 0;
  return hasContent ? [{ role: 'assistant', content: text === '' ? null : text, tool_calls: nonEmpty(calls) }] : [];
}

function toCall(block: unknown): object {
  const given = JSON.stringify(member(block, 'input') ?? {});
  return { id: member(block, 'id'), type: 'function', function: { name: member(block, 'name'), arguments: given } };
}

type Parts = ReadonlyArray<object>;

function toUserMessages(content: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const results: object[] = [];
  const parts: object[] = [];
  for (const [index, block] of listOf(content).entries()) {
    const where = `${at}.content[${index}]`;
    if (member(block, 'type') !== 'tool_result') {
      addParts(block, where, { parts, refuse });
      continue;
    }
    const shown = partsIn(member(block, 'content'), `${where}.content`, refuse);
    results.push({ role: 'tool', tool_call_id: member(block, 'tool_use_id'), content: joinTexts(shown) });
    // A message of a tool contains only text.
    for (const part of shown) if (member(part, 'type') !== 'text') parts.push(part);
  }
  const onlyText = parts.every((part) => member(part, 'type') === 'text');
  const output = onlyText && parts.length === 1 ? joinTexts(parts) : parts;
  return parts.length === 0 ? results : [...results, { role: 'user', content: output }];
}

function joinTexts(parts: Parts): string {
  return parts.flatMap((part) => textOf(member(part, 'text')) ?? []).join('\n');
}

/** A text, or the texts of blocks, which must all be text. */
function toTexts(content: unknown, at: string, refuse: Refuse): string {
  const parts = partsIn(content, at, refuse);
  const other = parts.findIndex((part) => member(part, 'type') !== 'text');
  if (other !== -1) refuse(`${at}[${other}].type`, 'must be text for this model.');
  return joinTexts(parts);
}

/** The parts of a content: a text, or blocks. */
function partsIn(content: unknown, at: string, refuse: Refuse): Parts {
  const parts: object[] = [];
  addContent(content, at, { parts, refuse });
  return parts;
}

/** The parts so far. All depths share one list, because a copy at each depth would multiply the work. */
interface ContentWriter {
  readonly parts: object[];
  readonly refuse: Refuse;
}

function addContent(content: unknown, at: string, writing: ContentWriter): void {
  if (typeof content === 'string') {
    if (content !== '') writing.parts.push({ type: 'text', text: content });
    return;
  }
  for (const [index, block] of listOf(content).entries()) addParts(block, `${at}[${index}]`, writing);
}

function addParts(block: unknown, at: string, writing: ContentWriter): void {
  const { parts, refuse } = writing;
  const type = member(block, 'type');
  if (type === 'text') parts.push({ type, text: textOf(member(block, 'text')) ?? '' });
  else if (type === 'image')
    parts.push({ type: 'image_url', image_url: { url: toUrl(member(block, 'source'), at, refuse) } });
  else if (type === 'document') addDocument(block, at, writing);
  else if (type === 'tool_reference') parts.push({ type: 'text', text: textOf(member(block, 'tool_name')) ?? '' });
  else if (type === 'search_result') addContent(member(block, 'content'), `${at}.content`, writing);
  else refuse(`${at}.type`, 'must be text, image, document or tool_result for this model.');
}

function addDocument(block: unknown, at: string, writing: ContentWriter): void {
  const { parts, refuse } = writing;
  const source = member(block, 'source');
  const type = member(source, 'type');
  if (type === 'text') parts.push({ type, text: textOf(member(source, 'data')) ?? '' });
  else if (type === 'content') addContent(member(source, 'content'), `${at}.source.content`, writing);
  else {
    if (type !== 'base64') refuse(`${at}.source.type`, 'must be base64, text or content for this model.');
    const filename = textOf(member(block, 'title')) ?? 'document.pdf';
    parts.push({ type: 'file', file: { filename, file_data: toUrl(source, at, refuse) } });
  }
}

function toUrl(source: unknown, at: string, refuse: Refuse): string | undefined {
  const type = member(source, 'type');
  if (type === 'url') return textOf(member(source, 'url'));
  if (type !== 'base64') refuse(`${at}.source.type`, 'must be base64 or url for this model.');
  return `data:${textOf(member(source, 'media_type')) ?? ''};base64,${textOf(member(source, 'data')) ?? ''}`;
}

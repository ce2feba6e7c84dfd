// Chat completions for Anthropic's Messages API: requests and replies are translated. Members without a counterpart are
// left out.
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8 } from '#core/json/bytes.ts';
import { listOf, member, parseJson, textOf } from '#core/json/json.ts';
import type { Codec } from '../codec.ts';
import { membersFor } from '../dialects/anthropic-clouds.ts';
import { anthropicError, routeToAnthropic } from '../dialects/anthropic-dialect.ts';
import { append, nonEmpty, type Refuse, toTranslatedCall, translate } from '../dialects/translation.ts';
import { toCompletion } from './anthropic-reply.ts';
import { createReader } from './anthropic-stream.ts';
import { argumentsOf, hasTooManyArguments, MAX_ARGUMENT_VALUES } from './parts.ts';
import { createEndWriter } from './stream-end.ts';

export const anthropic: Codec = {
  isTranslated: true,
  routeTo: routeToAnthropic,
  toCall: (chat, recipient) => {
    const { body, stream } = chat;
    const decided = { model: recipient.endpoint.entry.model, maxTokens: recipient.limit.max, stream };
    const messagesBody = toMessagesBody(parseJson(body.text), decided);
    const cloud = membersFor(recipient, chat);
    if (!messagesBody.ok || cloud === undefined) return toTranslatedCall(chat, recipient, messagesBody);
    const kept = Object.entries(messagesBody.value).filter(([name]) => !cloud.drop.has(name));
    return toTranslatedCall(chat, recipient, ok({ ...cloud.set, ...Object.fromEntries(kept) }));
  },
  readReply: (bytes, { created }) => toCompletion(parseJson(fromUtf8(bytes)), created),
  readError: (bytes) => anthropicError(parseJson(fromUtf8(bytes))),
  streams: { createReader, createEndWriter },
};

/** The members that the gateway sets, whatever the client wrote. */
interface GatewayMembers {
  readonly model: string;
  /** The limit, which Anthropic requires: that of the client, else that of the reservation. */
  readonly maxTokens: number;
  readonly stream: boolean;
}

/** Members of Anthropic's API that clients send: same name, same meaning. */
const PASSED_MEMBERS = ['top_p', 'top_k', 'thinking'];
/** The maximum temperature of Anthropic; OpenAI's is 2. */
const MAX_TEMPERATURE = 1;

const TOO_MANY_ARGUMENTS: Failure = {
  code: 'invalid_request',
  param: 'messages',
  message: `"messages" must have at most ${MAX_ARGUMENT_VALUES} values in the arguments of its tool_calls for this model. Send fewer or shorter tool calls.`,
};

/** The body for Anthropic, or the refusal of a part without a counterpart there. */
export function toMessagesBody(
  request: unknown,
  { model, maxTokens, stream }: GatewayMembers,
): Result<object, Failure> {
  const messages = listOf(member(request, 'messages'));
  if (hasTooManyArguments(messages)) return err(TOO_MANY_ARGUMENTS);
  return translate((refuse) => {
    const { system, turns } = toTurns(messages, refuse);
    const tools = listOf(member(request, 'tools')).flatMap(toTool);
    const user = textOf(member(request, 'user')) ?? '';
    const temperature = member(request, 'temperature');
    return {
      model,
      max_tokens: maxTokens,
      system: nonEmpty(system),
      messages: turns,
      tools: nonEmpty(tools),
      tool_choice: tools.length === 0 ? undefined : toToolChoice(request),
      stop_sequences: nonEmpty(toStop(member(request, 'stop'))),
      temperature: typeof temperature === 'number' ? Math.min(temperature, MAX_TEMPERATURE) : undefined,
      ...Object.fromEntries(PASSED_MEMBERS.map((name) => [name, member(request, name) ?? undefined])),
      metadata: user === '' ? undefined : { user_id: user },
      stream: stream || undefined,
    };
  });
}

function toTool(tool: unknown): Blocks {
  const declared = member(tool, 'function');
  const name = textOf(member(declared, 'name'));
  if (member(tool, 'type') !== 'function' || name === undefined) return [];
  const description = textOf(member(declared, 'description'));
  const parameters = member(declared, 'parameters') ?? { type: 'object', properties: {} };
  return [{ name, description, input_schema: parameters, cache_control: cacheOf(tool) }];
}

function toToolChoice(request: unknown): object | undefined {
  const asked = member(request, 'tool_choice');
  const isAlone = member(request, 'parallel_tool_calls') === false;
  const alone = isAlone ? { disable_parallel_tool_use: true } : {};
  const name = textOf(member(member(asked, 'function'), 'name'));
  if (name !== undefined) return { type: 'tool', name, ...alone };
  if (asked === 'none') return { type: 'none' };
  if (asked === 'required') return { type: 'any', ...alone };
  return asked === 'auto' || isAlone ? { type: 'auto', ...alone } : undefined;
}

/** Stop sequences without blank ones, which Anthropic refuses. */
function toStop(stop: unknown): ReadonlyArray<unknown> {
  return [stop, ...listOf(stop)].filter((text) => typeof text === 'string' && text.trim() !== '');
}

type Blocks = ReadonlyArray<object>;

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: object[];
}

/**
 * The turns of the conversation. Tool results belong to the user's turns. Neighbours of one role form one turn, so
 * results stay together.
 */
function toTurns(messages: ReadonlyArray<unknown>, refuse: Refuse) {
  const system: object[] = [];
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    const role = member(message, 'role');
    if (role === 'system' || role === 'developer') append(system, toBlocks(message, at, refuse));
    else if (role === 'user') append(contentOf('user'), toBlocks(message, at, refuse));
    else if (role === 'assistant') append(contentOf('assistant'), toAssistantBlocks(message, at, refuse));
    else if (role === 'tool') contentOf('user').push(toResult(message, at, refuse));
    else refuse(`${at}.role`, 'must be system, developer, user, assistant or tool for this model.');
  }
  return { system, turns };

  /** The content of the last turn, or of a new turn if the last one has another role. */
  function contentOf(role: Turn['role']): object[] {
    const last = turns.at(-1);
    if (last?.role === role) return last.content;
    const content: object[] = [];
    turns.push({ role, content });
    return content;
  }
}

function toAssistantBlocks(message: unknown, at: string, refuse: Refuse): Blocks {
  if ((member(message, 'function_call') ?? undefined) !== undefined)
    refuse(`${at}.function_call`, 'must be tool_calls for this model.');
  const refusal = textOf(member(message, 'refusal')) ?? '';
  return [...toBlocks(message, at, refuse), ...toText(refusal, undefined), ...toCalls(message, at, refuse)];
}

function toCalls(message: unknown, at: string, refuse: Refuse): Blocks {
  return listOf(member(message, 'tool_calls')).map((call, index) => {
    const called = member(call, 'function');
    const given = argumentsOf(call);
    const input = given.trim() === '' ? {} : parseJson(given);
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      refuse(`${at}.tool_calls[${index}].function.arguments`, 'must be a JSON object for this model.');
    }
    return { type: 'tool_use', id: member(call, 'id'), name: member(called, 'name'), input };
  });
}

function toResult(message: unknown, at: string, refuse: Refuse): object {
  const content = nonEmpty(toBlocks(message, at, refuse));
  return { type: 'tool_result', tool_use_id: member(message, 'tool_call_id'), content };
}

/** A data URL: `data:image/png;base64,…`. Group 1: the media type; group 2: the bytes. */
const DATA_URL = /^data:([^;,]+);base64,(.*)$/s;

/** The blocks of a message's content, without empty texts, which Anthropic refuses. */
function toBlocks(message: unknown, at: string, refuse: Refuse): Blocks {
  const content = member(message, 'content');
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return toText(content, undefined);
  if (!Array.isArray(content)) refuse(`${at}.content`, 'must be a text or an array of parts.');
  return listOf(content).flatMap((part, index) => toBlock(part, `${at}.content[${index}]`, refuse));
}

function toBlock(part: unknown, at: string, refuse: Refuse): Blocks {
  switch (member(part, 'type')) {
    case 'text':
      return toText(textOf(member(part, 'text')) ?? '', part);
    case 'refusal':
      return toText(textOf(member(part, 'refusal')) ?? '', part);
    case 'image_url':
      return [{ type: 'image', source: toImage(member(part, 'image_url'), at, refuse), cache_control: cacheOf(part) }];
    case 'file':
      return [{ type: 'document', source: toFile(member(part, 'file'), at, refuse), cache_control: cacheOf(part) }];
    default:
      refuse(`${at}.type`, 'must be text, image_url or file for this model.');
      return [];
  }
}

function toText(text: string, part: unknown): Blocks {
  return text === '' ? [] : [{ type: 'text', text, cache_control: cacheOf(part) }];
}

function toImage(image: unknown, at: string, refuse: Refuse): object | undefined {
  const url = textOf(image) ?? textOf(member(image, 'url')) ?? '';
  const source = toBase64(url);
  if (source === undefined && !/^https?:\/\//i.test(url)) {
    refuse(`${at}.image_url.url`, 'must be an http address or a base64 data URL for this model.');
  }
  return source ?? { type: 'url', url };
}

function toFile(file: unknown, at: string, refuse: Refuse): object | undefined {
  const source = toBase64(textOf(member(file, 'file_data')) ?? '');
  if (source === undefined) refuse(`${at}.file.file_data`, 'must be a base64 data URL for this model.');
  return source;
}

function toBase64(url: string): object | undefined {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  return data === undefined ? undefined : { type: 'base64', media_type: mediaType, data };
}

/** Anthropic's member of a part with which clients request that the prompt is cached up to this part. */
function cacheOf(part: unknown): unknown {
  return member(part, 'cache_control') ?? undefined;
}

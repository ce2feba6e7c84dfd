// Chat completion requests in the words of Anthropic's Messages API. What has no counterpart there is left out.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import { listOf, member, parseJson, textOf } from './json.ts';

/** Members that the gateway decides, whatever the client wrote. */
interface Decided {
  readonly model: string;
  /** Required there: the client's limit, else that of the hold. */
  readonly maxTokens: number;
  readonly stream: boolean;
}

/** Fields of Anthropic's own that clients send along: same name, same meaning. */
const PASSED_ON = ['top_p', 'top_k', 'thinking'];
/** Anthropic's scale ends here, OpenAI's at 2. */
const HOTTEST = 1;

/** Fails where the conversation holds what cannot be said there, so that nothing of it is lost without a word. */
export function toMessagesBody(request: unknown, { model, maxTokens, stream }: Decided): Result<object, Failure> {
  let problem: Failure | undefined;
  const refuse: Refuse = (param, message) => {
    problem ??= { code: 'invalid_request', param, message: `"${param}" ${message}` };
  };
  const { system, turns } = toTurns(listOf(member(request, 'messages')), refuse);
  const tools = listOf(member(request, 'tools')).flatMap(toTool);
  const body = {
    model,
    max_tokens: maxTokens,
    ...(system.length === 0 ? {} : { system }),
    messages: turns,
    ...(tools.length === 0 ? {} : { tools, ...toToolChoice(request) }),
    ...toStop(member(request, 'stop')),
    ...toTemperature(member(request, 'temperature')),
    ...Object.assign({}, ...PASSED_ON.map((name) => present(name, member(request, name)))),
    ...toMetadata(member(request, 'user')),
    ...(stream ? { stream } : {}),
  };
  return problem === undefined ? ok(body) : err(problem);
}

function toTool(tool: unknown): ReadonlyArray<object> {
  const declared = member(tool, 'function');
  const name = textOf(member(declared, 'name'));
  if (member(tool, 'type') !== 'function' || name === undefined) return [];
  const description = textOf(member(declared, 'description'));
  return [
    {
      name,
      ...(description === undefined ? {} : { description }),
      input_schema: member(declared, 'parameters') ?? { type: 'object', properties: {} },
      ...cacheOf(tool),
    },
  ];
}

function toToolChoice(request: unknown): object {
  const asked = member(request, 'tool_choice');
  const alone = member(request, 'parallel_tool_calls') === false ? { disable_parallel_tool_use: true } : {};
  const name = textOf(member(member(asked, 'function'), 'name'));
  if (name !== undefined) return { tool_choice: { type: 'tool', name, ...alone } };
  if (asked === 'none') return { tool_choice: { type: 'none' } };
  if (asked === 'required') return { tool_choice: { type: 'any', ...alone } };
  return asked === 'auto' || 'disable_parallel_tool_use' in alone ? { tool_choice: { type: 'auto', ...alone } } : {};
}

/** Blank sequences would be refused there. */
function toStop(stop: unknown): object {
  const sequences = [stop, ...listOf(stop)].map(textOf).filter((text) => text !== undefined && text.trim() !== '');
  return sequences.length === 0 ? {} : { stop_sequences: sequences };
}

function toTemperature(temperature: unknown): object {
  return typeof temperature === 'number' ? { temperature: Math.min(temperature, HOTTEST) } : {};
}

function toMetadata(user: unknown): object {
  return typeof user === 'string' && user !== '' ? { metadata: { user_id: user } } : {};
}

function present(name: string, value: unknown): object {
  return value === undefined || value === null ? {} : { [name]: value };
}

type Blocks = ReadonlyArray<object>;

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: Blocks;
}

interface Turns {
  readonly system: Blocks;
  readonly turns: ReadonlyArray<Turn>;
}

/** Results of tools are told by the user there. Neighbours of one role are one turn: so all results of a turn stand together. */
function toTurns(messages: ReadonlyArray<unknown>, refuse: Refuse): Turns {
  const system: object[] = [];
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    const role = member(message, 'role');
    if (role === 'system' || role === 'developer') system.push(...toBlocks(message, at, refuse));
    else if (role === 'user') add('user', toBlocks(message, at, refuse));
    else if (role === 'assistant') add('assistant', toAnswer(message, at, refuse));
    else if (role === 'tool') add('user', [toResult(message, at, refuse)]);
    else refuse(`${at}.role`, 'must be system, developer, user, assistant or tool for this model.');
  }
  return { system, turns };

  function add(role: Turn['role'], content: Blocks): void {
    const last = turns.at(-1);
    if (last?.role === role) turns.splice(-1, 1, { role, content: [...last.content, ...content] });
    else turns.push({ role, content });
  }
}

function toAnswer(message: unknown, at: string, refuse: Refuse): Blocks {
  if ((member(message, 'function_call') ?? undefined) !== undefined)
    refuse(`${at}.function_call`, 'must be tool_calls for this model.');
  const refusal = textOf(member(message, 'refusal')) ?? '';
  const refused = refusal === '' ? [] : [{ type: 'text', text: refusal }];
  return [...toBlocks(message, at, refuse), ...refused, ...toCalls(message, at, refuse)];
}

function toCalls(message: unknown, at: string, refuse: Refuse): Blocks {
  return listOf(member(message, 'tool_calls')).map((call, index) => {
    const called = member(call, 'function');
    const given = textOf(member(called, 'arguments')) ?? '';
    const input = given.trim() === '' ? {} : parseJson(given);
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      refuse(`${at}.tool_calls[${index}].function.arguments`, 'must be a JSON object for this model.');
    }
    return { type: 'tool_use', id: member(call, 'id'), name: member(called, 'name'), input };
  });
}

function toResult(message: unknown, at: string, refuse: Refuse): object {
  const content = toBlocks(message, at, refuse);
  return {
    type: 'tool_result',
    tool_use_id: member(message, 'tool_call_id'),
    ...(content.length === 0 ? {} : { content }),
  };
}

/** Says what in the request has no words there. The first one told is what the client hears. */
type Refuse = (param: string, message: string) => void;

/** `data:image/png;base64,…`; group 1 the media type, 2 the bytes. */
const DATA_URL = /^data:([^;,]+);base64,(.*)$/s;

/** The blocks of a message's content. Empty texts are left out: they would be refused there. */
function toBlocks(message: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const content = member(message, 'content');
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return toText(content, undefined);
  if (!Array.isArray(content)) refuse(`${at}.content`, 'must be a text or an array of parts.');
  return listOf(content).flatMap((part, index) => toBlock(part, `${at}.content[${index}]`, refuse));
}

function toBlock(part: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  switch (member(part, 'type')) {
    case 'text':
      return toText(textOf(member(part, 'text')) ?? '', part);
    case 'refusal':
      return toText(textOf(member(part, 'refusal')) ?? '', part);
    case 'image_url':
      return [{ type: 'image', source: toImage(member(part, 'image_url'), at, refuse), ...cacheOf(part) }];
    case 'file':
      return [{ type: 'document', source: toFile(member(part, 'file'), at, refuse), ...cacheOf(part) }];
    default:
      refuse(`${at}.type`, 'must be text, image_url or file for this model.');
      return [];
  }
}

function toText(text: string, part: unknown): ReadonlyArray<object> {
  return text === '' ? [] : [{ type: 'text', text, ...cacheOf(part) }];
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

/** A mark of Anthropic's own, which clients set on parts: up to here the prompt is kept in the cache. */
function cacheOf(part: unknown): object {
  return present('cache_control', member(part, 'cache_control'));
}

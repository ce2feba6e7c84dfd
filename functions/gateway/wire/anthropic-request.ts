// What does a chat completion request ask of Anthropic's Messages API? What has no counterpart there is left out.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Refuse } from './anthropic-blocks.ts';
import { toTurns } from './anthropic-turns.ts';
import { listOf, member, textOf } from './json.ts';

/** What the gateway decides, whatever the client wrote. */
export interface Decided {
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
    ...Object.fromEntries(PASSED_ON.flatMap((name) => present(name, member(request, name)))),
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
      ...Object.fromEntries(present('cache_control', member(tool, 'cache_control'))),
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

function present(name: string, value: unknown): ReadonlyArray<readonly [string, unknown]> {
  return value === undefined || value === null ? [] : [[name, value]];
}

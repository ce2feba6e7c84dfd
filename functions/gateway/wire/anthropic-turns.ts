// How does a conversation in OpenAI's words read in Anthropic's? Turns of user and assistant, what is of the system beside them.
import { type Refuse, toBlocks } from './anthropic-blocks.ts';
import { listOf, member, parseJson, textOf } from './json.ts';

type Blocks = ReadonlyArray<object>;

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly content: Blocks;
}

export interface Turns {
  readonly system: Blocks;
  readonly turns: ReadonlyArray<Turn>;
}

/** Results of tools are told by the user there. Neighbours of one role are one turn: so all results of a turn stand together. */
export function toTurns(messages: ReadonlyArray<unknown>, refuse: Refuse): Turns {
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
  if (present(member(message, 'function_call'))) refuse(`${at}.function_call`, 'must be tool_calls for this model.');
  const refusal = textOf(member(message, 'refusal')) ?? '';
  const refused = refusal === '' ? [] : [{ type: 'text', text: refusal }];
  return [...toBlocks(message, at, refuse), ...refused, ...toCalls(message, at, refuse)];
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
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

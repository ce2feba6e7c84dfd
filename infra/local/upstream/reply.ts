// How does the sample upstream put an answer on the wire, whole or as a stream?
import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Completion } from './completion.ts';
import type { Stats } from './stats.ts';

const NO_PACE = { first: 0, token: 2 };

/** The whole completion as one JSON object. */
export async function replyWhole(response: ServerResponse, completion: Completion, stats: Stats): Promise<void> {
  const { behaviour, frame, tokens, finish, answers, usage } = completion;
  const pace = behaviour.pace ?? { first: 0, token: 0 };
  await wait(pace.first + pace.token * tokens.length);
  const message = { role: 'assistant', content: tokens.join(''), refusal: null };
  const choices = indexes(answers).map((index) => ({ index, message, logprobs: null, finish_reason: finish }));
  const reported = behaviour.withoutUsage ? {} : { usage };
  const body = JSON.stringify({ ...frame, object: 'chat.completion', choices, ...reported });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  if (behaviour.cutAfter !== undefined) {
    response.write(body.slice(0, body.length / 2));
    return hangUp(response);
  }
  if (!behaviour.withoutUsage) stats.reported(frame.model, usage);
  response.end(body);
}

/** The completion as server-sent events, a token in each. `usage` comes last, in a chunk of its own, where it was asked for. */
export async function replyStream(
  response: ServerResponse,
  completion: Completion,
  includeUsage: boolean,
  stats: Stats,
): Promise<void> {
  const { behaviour, frame, tokens, finish, answers, usage } = completion;
  const pace = behaviour.pace ?? NO_PACE;
  const base = { ...frame, object: 'chat.completion.chunk' };
  const noUsage = includeUsage ? { usage: null } : {};
  const send = (delta: object, reason: string | null) => {
    const choices = indexes(answers).map((index) => ({ index, delta, logprobs: null, finish_reason: reason }));
    for (const choice of choices) event(response, JSON.stringify({ ...base, choices: [choice], ...noUsage }));
  };
  await wait(pace.first);
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  send({ role: 'assistant', content: '' }, null);
  for (const [index, token] of tokens.entries()) {
    if (index === behaviour.cutAfter) return hangUp(response);
    await wait(pace.token);
    if (response.destroyed) return;
    send({ content: token }, null);
  }
  send({}, finish);
  if (includeUsage && !behaviour.withoutUsage) {
    event(response, JSON.stringify({ ...base, choices: [], usage }));
    stats.reported(frame.model, usage);
  }
  event(response, '[DONE]');
  response.end();
}

/** What was written still arrives; the end of the body never does. */
function hangUp(response: ServerResponse): void {
  response.socket?.end();
}

function event(response: ServerResponse, data: string): void {
  response.write(`data: ${data}\n\n`);
}

function indexes(count: number): ReadonlyArray<number> {
  return [...Array(count).keys()];
}

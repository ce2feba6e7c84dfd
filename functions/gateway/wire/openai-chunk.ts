// What is in one event of a streamed chat completion?
import { toUsage } from '#core/usage.ts';
import { bytesIn } from '../measure.ts';
import { NOTHING, type Piece } from './dialect.ts';
import { listOf, member, parseJson, textOf } from './json.ts';
import { toWireError } from './openai-error.ts';
import { dataOf } from './sse.ts';

const DONE = '[DONE]';
/** Members that say something, in a message or a delta. */
const TEXTS = ['content', 'reasoning_content', 'reasoning', 'refusal'];
const FRAME = ['id', 'object', 'created', 'model'];

export function toPiece(event: Uint8Array): Piece {
  const data = dataOf(event);
  if (data === undefined || data.trim() === DONE) return { ...NOTHING, bytes: event, done: data !== undefined };
  const chunk = parseJson(data);
  // It reaches the client, who may make out what it says: where nobody counts, all of it was said.
  if (chunk === undefined) return { ...NOTHING, bytes: event, bytesSaid: bytesIn(data) };
  const choices = member(chunk, 'choices');
  const list = listOf(choices);
  let deltas = 0;
  let bytesSaid = 0;
  for (const choice of list) {
    const length = lengthOf(member(choice, 'delta'));
    if (length > 0) deltas += 1;
    bytesSaid += length;
  }
  const usage = toUsage(member(chunk, 'usage') ?? member(member(chunk, 'x_groq'), 'usage'));
  const error = member(chunk, 'error');
  return {
    bytes: event,
    events: undefined,
    done: false,
    deltas,
    bytesSaid,
    usage,
    prompt: undefined,
    usageOnly: usage !== undefined && Array.isArray(choices) && choices.length === 0,
    choices: list.map((choice) => ({
      index: Number(member(choice, 'index') ?? 0),
      finished: typeof member(choice, 'finish_reason') === 'string',
    })),
    frame: Array.isArray(choices) ? () => frameOf(chunk) : undefined,
    error: error === undefined || error === null ? undefined : toWireError(chunk),
  };
}

function frameOf(chunk: unknown): Readonly<Record<string, unknown>> {
  const frame: Record<string, unknown> = {};
  for (const name of FRAME) {
    const value = member(chunk, name);
    if (value !== undefined) frame[name] = value;
  }
  return frame;
}

/** Bytes of everything that a message or a delta says: text, reasoning, refusal, tool calls. Names and ids are not said. */
export function lengthOf(said: unknown): number {
  let length = 0;
  for (const name of TEXTS) length += bytesAt(said, name);
  length += calledIn(member(said, 'function_call'));
  for (const call of listOf(member(said, 'tool_calls'))) length += calledIn(member(call, 'function'));
  return length;
}

function calledIn(called: unknown): number {
  return bytesAt(called, 'name') + bytesAt(called, 'arguments');
}

function bytesAt(of: unknown, name: string): number {
  return bytesIn(textOf(member(of, name)) ?? '');
}

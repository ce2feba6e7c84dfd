// What is in one event of a streamed chat completion?
import { toUsage } from '#core/usage.ts';
import { bytesIn } from '../measure.ts';
import { NOTHING, type Piece } from './dialect.ts';
import { listOf, member, parseJson } from './json.ts';
import { toWireError } from './openai-error.ts';
import { lengthOf, soundIn } from './openai-said.ts';
import { dataOf } from './sse.ts';

const DONE = '[DONE]';
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
  let sound = 0;
  for (const choice of list) {
    const delta = member(choice, 'delta');
    const length = lengthOf(delta);
    const heard = soundIn(delta);
    // A piece of sound may be less than a token, and what is counted here may cut a stream.
    if (length > 0 || heard >= 1) deltas += 1;
    bytesSaid += length;
    sound += heard;
  }
  const usage = toUsage(member(chunk, 'usage') ?? member(member(chunk, 'x_groq'), 'usage'));
  const error = member(chunk, 'error');
  return {
    bytes: event,
    events: undefined,
    done: false,
    deltas,
    bytesSaid,
    sound,
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

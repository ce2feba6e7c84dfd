// Streamed responses: each event passes unchanged, and is read for content, counts, errors and the end.
import { listOf, member, textOf } from '#core/json/json.ts';
import { EMPTY_PIECE, ENDED_ANSWER, OPEN_ANSWER, type Piece, type ReplyOptions, type StreamReader } from '../codec.ts';
import { readOpenaiError } from '../dialects/openai-dialect.ts';
import { withoutSecretsIn } from '../json/secrets.ts';
import { bytesIn } from '../prompt/prompt.ts';
import { createEventReader } from '../streams/event-reader.ts';
import { setPart } from '../streams/parts.ts';
import { dataOf, jsonOf, toNamedEvent } from '../streams/sse.ts';
import { mark } from './marks.ts';
import { isSearch, sizeOf, toUsage } from './usage.ts';

const ITEM_DONE = 'response.output_item.done';
const SUMMARY = 'response.reasoning_summary_text.delta';

export function createReader(options: ReplyOptions): StreamReader {
  const writtenBytes: OutputBytes = new Map();
  return createEventReader(options.resizePending, (bytes) => {
    const event = jsonOf(bytes);
    const shown = mark(withoutSecrets(bytes, event, options), event, options);
    return readEvent(shown, shown === bytes ? event : jsonOf(shown), writtenBytes);
  });
}

/** The event without the model entry's credentials; the same bytes if its error has none. */
function withoutSecrets(bytes: Uint8Array, event: unknown, { redact }: ReplyOptions): Uint8Array {
  const response = member(event, 'response');
  const shown = withoutSecretsIn(response, redact);
  return shown === response
    ? bytes
    : toNamedEvent(textOf(member(event, 'type')) ?? '', { ...Object(event), response: shown });
}

/** Bytes of output in the events so far, by item. */
type OutputBytes = Map<unknown, number>;

function readEvent(bytes: Uint8Array, event: unknown, written: OutputBytes): ReadonlyArray<Piece> {
  const type = textOf(member(event, 'type')) ?? '';
  switch (type) {
    case 'response.completed':
    case 'response.incomplete':
      return [toCountPiece(event, written), { ...EMPTY_PIECE, bytes, done: true }];
    case 'response.failed':
      return toFailedPieces(event);
    case 'error':
      return [{ ...EMPTY_PIECE, event, error: readOpenaiError(member(event, 'error') ?? withoutType(event)) }];
    default:
      if (type.startsWith('response.')) return [toContentPiece(bytes, event, { type, written })];
      // Comments and unknown events. A text that is no JSON may be the beginning of an event that was cut off.
      return [{ ...EMPTY_PIECE, bytes, outputBytes: event === undefined ? bytesIn(dataOf(bytes) ?? '') : 0 }];
  }
}

/** An event that is itself an error, without its type, which is the type of the event. */
function withoutType(event: unknown): unknown {
  return { ...Object(event), type: undefined };
}

/** The count of a last event, and the output that only this event has. The event itself waits for the settlement. */
function toCountPiece(event: unknown, written: OutputBytes): Piece {
  const response = member(event, 'response');
  const usage = toUsage(response);
  const end = { ...EMPTY_PIECE, event, choices: ENDED_ANSWER, usage };
  if (usage !== undefined) return end;
  const sizes = listOf(member(response, 'output')).map((item, index) => unwrittenBytesOf(item, index, written));
  return { ...end, ...toSizes(sizes.reduce((sum, size) => sum + size, 0)) };
}

/** The count and the error of a failed response. */
function toFailedPieces(event: unknown): ReadonlyArray<Piece> {
  const response = member(event, 'response');
  const usage = toUsage(response);
  const error = readOpenaiError(member(response, 'error'));
  return [...(usage === undefined ? [] : [{ ...EMPTY_PIECE, usage }]), { ...EMPTY_PIECE, event, error }];
}

function toContentPiece(
  bytes: Uint8Array,
  event: unknown,
  { type, written }: { readonly type: string; readonly written: OutputBytes },
): Piece {
  const piece = { ...EMPTY_PIECE, bytes, event, choices: OPEN_ANSWER };
  // A summary of reasoning is not as long as the billed reasoning: it never cuts a stream, and is charged only if the
  // provider does not count.
  if (type === SUMMARY) return { ...piece, outputBytes: bytesIn(textOf(member(event, 'delta')) ?? '') };
  const searches = type === ITEM_DONE && isSearch(member(event, 'item')) ? 1 : 0;
  return { ...piece, ...toSizes(sizeIn(event, type, written)), searches };
}

function toSizes(outputBytes: number): Pick<Piece, 'deltas' | 'outputBytes'> {
  return { deltas: outputBytes > 0 ? 1 : 0, outputBytes };
}

/** Bytes of output that no earlier event has. */
function sizeIn(event: unknown, type: string, written: OutputBytes): number {
  const index = member(event, 'output_index');
  if (type === ITEM_DONE) return unwrittenBytesOf(member(event, 'item'), index, written);
  if (!type.endsWith('.delta')) return 0;
  const size = bytesIn(textOf(member(event, 'delta')) ?? '');
  setPart(written, index, (written.get(index) ?? 0) + size);
  return size;
}

/** Bytes of a whole item that its deltas do not have. */
function unwrittenBytesOf(item: unknown, index: unknown, written: OutputBytes): number {
  const known = written.get(index) ?? 0;
  const size = sizeOf({ ...Object(item), summary: undefined });
  setPart(written, index, Math.max(known, size));
  return Math.max(0, size - known);
}

// Streams in AWS's frames (application/vnd.amazon.eventstream), converted to the server-sent events that Anthropic
// sends. `@smithy/eventstream-codec` is slower (decision 0035).
import { bytesFromBase64 } from '#core/json/base64.ts';
import { concat, fromUtf8, toUtf8 } from '#core/json/bytes.ts';
import { member, parseJson, textOf } from '#core/json/json.ts';
import { isTooCostly } from '#core/json/json-limits.ts';
import { UpstreamError } from '#core/ports/upstream.ts';
import { PendingBytes, type ResizePending, toNamedEvent } from './sse.ts';

/** Bytes of the lengths of message and headers, and of their checksum. */
const PRELUDE = 12;
const CHECKSUM = 4;
/** The maximum message of AWS: 16 MiB and its headers. */
const MAX_MESSAGE = 16 * 1024 * 1024 + 256 * 1024;
/** Bytes of header values by type. A type that is not in the table has its length before the value. */
const VALUE_LENGTHS: ReadonlyMap<number, number> = new Map([
  ...([
    [0, 0],
    [1, 0],
    [2, 1],
    [3, 2],
    [4, 4],
    [5, 8],
    [8, 8],
    [9, 16],
  ] as const),
]);
/** Anthropic's names for the exceptions of a stream. */
const ERROR_TYPES: ReadonlyMap<string, string> = new Map([
  ['throttlingException', 'rate_limit_error'],
  ['validationException', 'invalid_request_error'],
  ['modelTimeoutException', 'timeout_error'],
  ['serviceUnavailableException', 'overloaded_error'],
]);

/** Converts a body to events. Throws if a checksum is wrong, or bytes are no message. */
export async function* toSse(
  body: AsyncIterable<Uint8Array>,
  keep: ResizePending = () => true,
): AsyncGenerator<Uint8Array> {
  const pending = new PendingBytes(keep);
  let needed = PRELUDE;
  for await (const bytes of body) {
    pending.add(bytes);
    // A long message arrives in many packets, which are joined once.
    if (pending.length < needed) continue;
    let joined = pending.take();
    const events: Uint8Array[] = [];
    for (needed = lengthOf(joined); needed <= joined.length; needed = lengthOf(joined)) {
      events.push(read(joined.subarray(0, needed)));
      joined = joined.subarray(needed);
    }
    pending.add(joined);
    if (events.length > 0) yield concat(events);
  }
}

/** The length of the message that begins here; the length of its prelude, if that has not arrived. */
function lengthOf(bytes: Uint8Array): number {
  if (bytes.length < PRELUDE) return PRELUDE;
  const view = viewOf(bytes);
  if (view.getUint32(8) !== crc32(bytes.subarray(0, 8)))
    throw new UpstreamError('broken', 'an event stream of AWS has a wrong checksum');
  const length = view.getUint32(0);
  const headers = view.getUint32(4);
  if (length > MAX_MESSAGE || headers > length - PRELUDE - CHECKSUM)
    throw new UpstreamError('broken', 'an event stream of AWS has wrong lengths');
  return length;
}

/**
 * Reads a message. Throws `UpstreamError` if it is malformed: a header that ends too early, bytes that are no base64.
 */
function read(message: Uint8Array): Uint8Array {
  try {
    return toEvent(message);
  } catch (cause) {
    if (cause instanceof UpstreamError) throw cause;
    throw new UpstreamError('broken', 'an event stream of AWS has a malformed message', { cause });
  }
}

function toEvent(message: Uint8Array): Uint8Array {
  const end = message.length - CHECKSUM;
  const view = viewOf(message);
  if (view.getUint32(end) !== crc32(message.subarray(0, end)))
    throw new UpstreamError('broken', 'an event stream of AWS has a wrong checksum');
  const payload = PRELUDE + view.getUint32(4);
  const headers = headersIn(message.subarray(PRELUDE, payload));
  const bytes = message.subarray(payload, end);
  if (isTooCostly(bytes)) throw new UpstreamError('broken', 'an event of the upstream has too many values');
  const body = parseJson(fromUtf8(bytes));
  const failed = headers.get(':exception-type') ?? headers.get(':error-code');
  if (failed !== undefined) {
    const why = textOf(member(body, 'message')) ?? headers.get(':error-message') ?? failed;
    return toNamedEvent('error', { error: { type: ERROR_TYPES.get(failed) ?? 'api_error', message: why } });
  }
  const inner = bytesFromBase64(textOf(member(body, 'bytes')) ?? '');
  if (isTooCostly(inner)) throw new UpstreamError('broken', 'an event of the upstream has too many values');
  const data = fromUtf8(inner);
  const type = textOf(member(parseJson(data), 'type'));
  // Messages without an event keep the connection alive.
  return toUtf8(type === undefined ? ': \n\n' : `event: ${type}\ndata: ${data.replaceAll(/[\r\n]+/g, ' ')}\n\n`);
}

/** The headers with a text, by name. */
function headersIn(bytes: Uint8Array): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  const view = viewOf(bytes);
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 1 + view.getUint8(at);
    const type = view.getUint8(nameEnd);
    const fixed = VALUE_LENGTHS.get(type);
    const start = fixed === undefined ? nameEnd + 3 : nameEnd + 1;
    const end = start + (fixed ?? view.getUint16(nameEnd + 1));
    if (fixed === undefined)
      headers.set(fromUtf8(bytes.subarray(at + 1, nameEnd)), fromUtf8(bytes.subarray(start, end)));
    at = end;
  }
  return headers;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** CRC-32 as in ISO 3309, by a table of the 256 bytes. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let bits = byte;
  for (let turn = 0; turn < 8; turn += 1) bits = bits & 1 ? (bits >>> 1) ^ 0xedb88320 : bits >>> 1;
  return bits;
});

function crc32(bytes: Uint8Array): number {
  let bits = 0xffffffff;
  for (const byte of bytes) bits = (bits >>> 8) ^ (TABLE[(bits ^ byte) & 0xff] ?? 0);
  return (bits ^ 0xffffffff) >>> 0;
}

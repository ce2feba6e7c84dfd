// The body of a request to an upstream: a short body is joined, a long one is sent in pieces.
import { concat, toUtf8 } from '#core/json/bytes.ts';
import type { UpstreamRequest } from '#core/ports/upstream.ts';

type Parts = UpstreamRequest['body'];

/** The maximum bytes of a joined body: the HTTP client keeps it until the reply has ended. */
export const MAX_JOINED = 16 * 1024;
/** Bytes of one piece: TLS copies each piece. */
const PIECE = 64 * 1024;

export function lengthOf(parts: Parts): number {
  return parts.reduce((length, part) => length + Buffer.byteLength(part), 0);
}

/** The parts joined in a buffer of Node, in pooled memory if they are short. */
export function joinBody(parts: Parts, length = lengthOf(parts)): Buffer<ArrayBuffer> {
  const body = Buffer.allocUnsafe(length);
  let at = 0;
  for (const part of parts) {
    if (typeof part === 'string') at += body.write(part, at);
    else {
      body.set(part, at);
      at += part.length;
    }
  }
  return body;
}

/**
 * The parts as pieces, none of which is kept after it was taken. Short parts, of which there may be very many, are
 * joined with the parts after them.
 */
export function* piecesOf(parts: Parts): Generator<Uint8Array> {
  const left = parts.toReversed();
  let short: Uint8Array[] = [];
  let length = 0;
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    const begin = bytes.subarray(0, length > 0 || bytes.length < PIECE ? PIECE : 0);
    short.push(begin);
    length += begin.length;
    if (length >= PIECE) {
      yield Buffer.concat(short, length);
      short = [];
      length = 0;
    }
    for (let at = begin.length; at < bytes.length; at += PIECE) yield bytes.subarray(at, at + PIECE);
  }
  if (length > 0) yield Buffer.concat(short, length);
}

/** The parts joined without Node's buffers: workerd has these only with a compatibility flag. */
export function toBytes(parts: Parts): Uint8Array<ArrayBuffer> {
  // Bytes of a request or an encoder are never in shared memory.
  return concat(parts.map((part) => (typeof part === 'string' ? toUtf8(part) : part))) as Uint8Array<ArrayBuffer>;
}

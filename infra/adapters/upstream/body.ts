// The body of a request to an upstream: a short one joined, a long one piece by piece.
import { concat, toUtf8 } from '#core/json/bytes.ts';
import type { UpstreamRequest } from '#core/ports/serving.ts';

type Parts = UpstreamRequest['body'];

/** Bytes up to which a body is joined: a client library keeps it until the reply has ended. */
export const MAX_JOINED = 16 * 1024;
/** Bytes of one piece: TLS copies what it is given. */
const PIECE = 64 * 1024;

export function lengthOf(parts: Parts): number {
  return parts.reduce((length, part) => length + Buffer.byteLength(part), 0);
}

/** The parts joined in one of Node's buffers, in pooled memory where they are short. */
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
 * The parts in pieces, none of which is kept when it was taken. Short parts, of which there may be very many, go
 * together with what follows.
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

/** The parts joined by what every platform has: workerd has Node's buffers only where it is told to. */
export function toBytes(parts: Parts): Uint8Array<ArrayBuffer> {
  // Bytes of a request or an encoder are never in shared memory.
  return concat(parts.map((part) => (typeof part === 'string' ? toUtf8(part) : part))) as Uint8Array<ArrayBuffer>;
}

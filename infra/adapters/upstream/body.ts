// The body of a request to an upstream: a short one joined, a long one piece by piece.
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
 * The parts in pieces, none of which is kept when it was taken. Texts, which are short, go together with what follows.
 */
export function* piecesOf(parts: Parts): Generator<Uint8Array> {
  const left = [...parts];
  let texts = '';
  for (let part = left.shift(); part !== undefined; part = left.shift()) {
    if (typeof part === 'string') {
      texts += part;
      continue;
    }
    const rest = texts === '' ? part : part.subarray(Math.min(part.length, PIECE));
    if (texts !== '') yield joinBody([texts, part.subarray(0, PIECE)]);
    texts = '';
    for (let at = 0; at < rest.length; at += PIECE) yield rest.subarray(at, at + PIECE);
  }
  if (texts !== '') yield Buffer.from(texts);
}

const encoder = new TextEncoder();

/** The parts joined by what every platform has: workerd has Node's buffers only where it is told to. */
export function toBytes(parts: Parts): Uint8Array<ArrayBuffer> {
  const pieces = parts.map((part) => (typeof part === 'string' ? encoder.encode(part) : part));
  const body = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

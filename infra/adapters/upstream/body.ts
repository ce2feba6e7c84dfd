// The body of a request to an upstream in one piece.
import type { UpstreamRequest } from '#core/ports/serving.ts';

/** The parts joined in one of Node's buffers, in pooled memory where they are short. */
export function joinBody(parts: UpstreamRequest['body']): Buffer<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += Buffer.byteLength(part);
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

const encoder = new TextEncoder();

/** The parts joined by what every platform has: workerd has Node's buffers only where it is told to. */
export function toBytes(parts: UpstreamRequest['body']): Uint8Array<ArrayBuffer> {
  const pieces = parts.map((part) => (typeof part === 'string' ? encoder.encode(part) : part));
  const body = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    body.set(piece, at);
    at += piece.length;
  }
  return body;
}

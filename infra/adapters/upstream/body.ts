// The body of a request to an upstream, in one of Node's buffers.
import type { UpstreamRequest } from '#core/ports/serving.ts';

/** The parts joined, in pooled memory where they are short. */
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

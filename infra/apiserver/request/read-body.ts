// What did the client send?
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { apiError, badRequest, type Outcome } from '../api-error.ts';

/** The real server's limit. */
const maxBytes = 3 * 1024 * 1024;

/** The whole body, unpacked where it came with gzip; 413 when it is too large. */
export async function readBody(message: IncomingMessage): Promise<Outcome<Buffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= maxBytes) chunks.push(chunk);
  }
  if (size > maxBytes) return apiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`);
  const body = Buffer.concat(chunks);
  if (message.headers['content-encoding'] !== 'gzip') return body;
  try {
    return gunzipSync(body, { maxOutputLength: maxBytes });
  } catch (error) {
    return badRequest(`cannot unpack the gzip body: ${(error as Error).message}`);
  }
}

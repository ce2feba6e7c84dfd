// Request bodies: read and decoded.
import type { IncomingMessage } from 'node:http';
import { type ApiError, apiError, badRequest, type Outcome } from '../api-error.ts';
import { decodeProtobuf, ProtobufError } from '../codec/protobuf.ts';
import { isObject, type JsonObject } from '../schema/json.ts';

/** The real server's limit. */
const maxBytes = 3 * 1024 * 1024;

/** The whole body; 413 when it is too large. */
export async function readBody(message: IncomingMessage): Promise<Outcome<Buffer>> {
  const body = await collect(message, maxBytes);
  return body ?? apiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`);
}

/** The bytes of a message, read to its end; undefined where there are more. */
export async function collect(message: IncomingMessage, max: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= max) chunks.push(chunk);
  }
  return size > max ? undefined : Buffer.concat(chunks);
}

/** Decodes JSON or Kubernetes protobuf by content type; no content type counts as JSON. */
export function decodeBody(body: Buffer, contentType: string): JsonObject | ApiError {
  const value = decodeAny(body, mediaType(contentType));
  if (isObject(value)) return value as JsonObject | ApiError;
  return badRequest('the request body must be an object');
}

export function mediaType(contentType: string): string {
  return contentType.split(';')[0]?.trim().toLowerCase() || 'application/json';
}

function decodeAny(body: Buffer, type: string): unknown {
  try {
    if (type === 'application/json') return JSON.parse(body.toString('utf8'));
    if (type === 'application/vnd.kubernetes.protobuf') return decodeProtobuf(body);
  } catch (error) {
    if (error instanceof ProtobufError) return unsupportedMedia(error.message);
    return badRequest(`error decoding the request body: ${(error as Error).message}`);
  }
  return unsupportedMedia(
    'the body of the request was in an unknown format - accepted media types include: application/json, application/vnd.kubernetes.protobuf',
  );
}

export function unsupportedMedia(message: string): ApiError {
  return apiError(415, 'UnsupportedMediaType', message);
}

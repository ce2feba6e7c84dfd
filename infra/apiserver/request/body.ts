// Request bodies: read, unpacked and decoded.
import type { IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { parse as parseYaml } from 'yaml';
import { type ApiError, apiError, badRequest, type Outcome } from '../api-error.ts';
import { decodeProtobuf, ProtobufError } from '../codec/protobuf.ts';
import { isObject, type JsonObject } from '../schema/json.ts';

/** The real server's limit. */
const maxBytes = 3 * 1024 * 1024;

/** The whole body, unpacked where it came with gzip; 413 when it is too large. */
export async function readBody(message: IncomingMessage): Promise<Outcome<Buffer>> {
  const body = await collect(message, maxBytes);
  if (body === undefined) {
    return apiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`);
  }
  if (message.headers['content-encoding'] !== 'gzip') return body;
  try {
    return gunzipSync(body, { maxOutputLength: maxBytes });
  } catch (error) {
    return badRequest(`cannot unpack the gzip body: ${(error as Error).message}`);
  }
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

/** Decodes JSON, YAML or Kubernetes protobuf by content type; no content type counts as JSON. */
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
    if (type === 'application/yaml') return parseYaml(body.toString('utf8'));
    if (type === 'application/vnd.kubernetes.protobuf') return decodeProtobuf(body);
  } catch (error) {
    if (error instanceof ProtobufError) return unsupportedMedia(error.message);
    return badRequest(`error decoding the request body: ${(error as Error).message}`);
  }
  return unsupportedMedia(
    'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
  );
}

export function unsupportedMedia(message: string): ApiError {
  return apiError(415, 'UnsupportedMediaType', message);
}

const token = /\s+|"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

type Level =
  | { readonly path: string; readonly members: Set<string>; readonly reported: Set<string>; key: string }
  | { readonly path: string; index: number };

/** The paths of repeated members, as strict decoding names them (`metadata.labels.app`, `spec.models[0].name`), each once. The text is valid JSON. */
export function duplicateMembers(text: string): string[] {
  const levels: Level[] = [];
  const found: string[] = [];
  let expectsKey = false;
  for (const [part] of text.matchAll(token)) {
    const level = levels.at(-1);
    if (part === '{') levels.push({ path: childPath(level), members: new Set(), reported: new Set(), key: '' });
    else if (part === '[') levels.push({ path: childPath(level), index: 0 });
    else if (part === '}' || part === ']') levels.pop();
    else if (part === ',' && level !== undefined && 'index' in level) level.index++;
    else if (part.startsWith('"') && expectsKey && level !== undefined && 'members' in level)
      note(level, JSON.parse(part), found);
    if (part.trim() !== '')
      expectsKey =
        part === '{' || (part === ',' && levels.at(-1) !== undefined && 'members' in (levels.at(-1) as Level));
  }
  return found;
}

function note(level: Extract<Level, { members: Set<string> }>, key: string, found: string[]): void {
  level.key = key;
  if (level.members.has(key) && !level.reported.has(key)) {
    level.reported.add(key);
    found.push(childPath(level));
  }
  level.members.add(key);
}

function childPath(level: Level | undefined): string {
  if (level === undefined) return '';
  if ('index' in level) return `${level.path}[${level.index}]`;
  return level.path === '' ? level.key : `${level.path}.${level.key}`;
}

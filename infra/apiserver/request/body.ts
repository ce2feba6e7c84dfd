// Which object does a request body hold?
import { parse as parseYaml } from 'yaml';
import { type ApiError, apiError, badRequest } from '../api-error.ts';
import { decodeProtobuf, ProtobufError } from '../codec/protobuf.ts';
import { isObject, type JsonObject } from '../schema/json.ts';

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

// Anthropic's Messages API: bodies are translated both ways; only OpenAI's dialect passes bytes through.
import type { Failure } from '#core/failure.ts';
import { parseJson } from '#core/json.ts';
import { err, ok, type Result } from '#core/result.ts';
import { toCompletion } from './anthropic-reply.ts';
import { toMessagesBody } from './anthropic-request.ts';
import { createReader } from './anthropic-stream.ts';
import type { Chat } from './chat.ts';
import { type Dialect, headersFor, type Recipient, type WireRequest } from './dialect.ts';
import { anthropicError } from './wire-error.ts';

export const anthropic: Dialect = {
  toRequest,
  readReply: (bytes, created) => toCompletion(parseJson(decoder.decode(bytes)), created),
  readError: (bytes) => anthropicError(parseJson(decoder.decode(bytes))),
  createReader,
};

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** The version of the API that this dialect was written against; the credential `apiVersion` names another. */
const API_VERSION = '2023-06-01';

function toRequest(chat: Chat, to: Recipient): Result<WireRequest, Failure> {
  const body = toMessagesBody(parseJson(chat.text), {
    model: to.entry.model,
    maxTokens: to.limit.max,
    stream: chat.stream,
  });
  if (!body.ok) return body;
  const text = write(body.value);
  if (text === undefined) return err({ code: 'invalid_request', message: 'The request body is nested too deeply.' });
  return ok({
    url: `${to.base.replace(/\/v1$/, '')}/v1/messages`,
    headers: headersOf(chat, to),
    body: encoder.encode(text),
  });
}

/** JSON.parse reads deeper nesting than JSON.stringify writes, which throws then. */
function write(body: object): string | undefined {
  try {
    return JSON.stringify(body);
  } catch {
    return undefined;
  }
}

function headersOf(chat: Chat, { credentials }: Recipient): Readonly<Record<string, string>> {
  const { apiKey, apiVersion = API_VERSION } = credentials;
  const headers = headersFor(chat.stream);
  headers['anthropic-version'] = apiVersion;
  if (apiKey !== undefined) headers['x-api-key'] = apiKey;
  return headers;
}

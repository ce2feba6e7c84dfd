// How is an answer that is no watch written?
import type { ServerResponse } from 'node:http';
import { type ApiError, apiError, isApiError } from '../api-error.ts';
import { encode } from '../read/representation.ts';
import type { ApiResponse } from './respond.ts';

type Written = {
  readonly code: number;
  readonly content: string | Uint8Array;
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Status code, Warning headers (`299 - "text"`) and body, in one piece. */
export function writeResponse(
  response: ServerResponse,
  answered: Exclude<ApiResponse, { watch: unknown }>,
  warnings: readonly string[],
): void {
  const { code, content, contentType, headers = {} } = toWritten(answered);
  for (const warning of warnings) response.appendHeader('warning', `299 - ${JSON.stringify(warning)}`);
  const body = typeof content === 'string' ? Buffer.from(content) : content;
  response.writeHead(code, {
    ...headers,
    'cache-control': 'no-cache, private',
    'content-type': contentType,
    'content-length': body.length,
  });
  response.end(body);
}

function toWritten(answered: Exclude<ApiResponse, { watch: unknown }>): Written {
  const json = { contentType: 'application/json' };
  if (isApiError(answered)) {
    return { ...json, code: answered.status.code ?? 500, content: `${JSON.stringify(answered.status)}\n` };
  }
  if ('form' in answered) {
    const { code, body, form } = answered;
    return { code, content: encode(body, form), contentType: form.encoding };
  }
  const { code = 200, body, contentType = json.contentType, headers = {} } = answered;
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  return { code, content: raw ? body : `${JSON.stringify(body)}\n`, contentType, headers };
}

/** Our own fault, as a Status: the log has the rest. */
export function brokenStatus(error: Error): ApiError {
  const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return apiError(500, 'InternalError', `Internal error occurred: ${error.message}${cause}`);
}

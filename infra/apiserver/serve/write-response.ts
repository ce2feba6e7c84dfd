// Responses on the wire: an answer in one piece, or the events of a watch.
import type { ServerResponse } from 'node:http';
import { type ApiError, isApiError } from '../api-error.ts';
import type { Watch } from '../read/watch.ts';
import type { JsonObject } from '../schema/json.ts';

/** A text or bytes as they are; an object as JSON. */
export type PlainResponse = {
  /** Default: 200. */
  readonly code?: number;
  readonly body: JsonObject | string | Uint8Array;
  /** Default: JSON. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export type WatchResponse = { readonly watch: Watch };

/** Status code, Warning headers (`299 - "text"`) and body, in one piece. */
export function writeResponse(
  response: ServerResponse,
  answer: PlainResponse | ApiError,
  warnings: readonly string[],
): void {
  const {
    code = 200,
    body,
    contentType = 'application/json',
    headers = {},
  } = isApiError(answer) ? { code: answer.status.code, body: answer.status } : answer;
  const isRaw = typeof body === 'string' || body instanceof Uint8Array;
  const content = Buffer.from(isRaw ? body : `${JSON.stringify(body)}\n`);
  for (const warning of warnings) response.appendHeader('warning', `299 - ${JSON.stringify(warning)}`);
  response.writeHead(code, {
    ...headers,
    'cache-control': 'no-cache, private',
    'content-type': contentType,
    'content-length': content.length,
  });
  response.end(content);
}

/** A client that does not read for so long is cut off; it resumes from the last resourceVersion it saw. */
const maxUnsentBytes = 64 * 1024 * 1024;

/** One JSON object a line, until the client leaves, the time is up, or the server stops. */
export function streamEvents(response: ServerResponse, { watch }: WatchResponse, signal: AbortSignal): void {
  response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
  response.flushHeaders();
  const stop = watch(
    (event) => {
      if (response.writableLength > maxUnsentBytes) response.destroy();
      else response.write(`${JSON.stringify(event)}\n`);
    },
    () => response.end(),
  );
  if (signal.aborted) stop();
  signal.addEventListener('abort', () => {
    stop();
    response.end();
  });
}

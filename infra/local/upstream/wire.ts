// What must a wire format of the sample upstream be able to do? Read a request, and answer it whole, as a stream, or with a refusal.
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { constants, createGzip } from 'node:zlib';
import type { Behaviour } from './behaviours.ts';
import type { Completion, CompletionRequest } from './completion.ts';
import type { Stats } from './stats.ts';

export interface Wire {
  /** The request in the words of chat completions, or what is wrong with it. */
  read(body: unknown): { readonly request: CompletionRequest } | { readonly wrong: string };
  /** The whole reply, for who wants no stream. */
  toReply(completion: Completion): object;
  replyStream(response: ServerResponse, completion: Completion, stats: Stats): Promise<void>;
  refuse(response: ServerResponse, status: number, code: string, message: string): void;
}

/** Writes the head of an answer, and answers where its body goes: through gzip where the model compresses. */
export function open(response: ServerResponse, { compressed = false }: Behaviour, type: string): Writable {
  const headers = { 'content-type': type, 'cache-control': 'no-cache' };
  response.writeHead(200, compressed ? { ...headers, 'content-encoding': 'gzip' } : headers);
  if (!compressed) return response;
  // Flushed at every write: a stream that waited for a full block would be none.
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  gzip.pipe(response);
  return gzip;
}

/** What was written still arrives; the end of the body never does. */
export function hangUp(response: ServerResponse): void {
  response.socket?.end();
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

// The sample upstream, which replaces a provider on one machine: it streams, reports usage, and fails on purpose for
// some names of models.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { constants, createGzip } from 'node:zlib';
import * as z from 'zod';
import { parseJson } from '../../../../functions/core/json/json.ts';
import { listen } from '../../../runtime/node/listen.ts';
import { BEHAVIOURS } from './behaviours.ts';
import { type Completion, type CompletionRequest, complete } from './completion.ts';
import { anthropic, type Dialect, openai } from './dialects.ts';
import { EmbeddingsRequest, embed } from './embeddings.ts';
import { responses } from './responses.ts';

export type SampleUpstream = Awaited<ReturnType<typeof createSampleUpstream>>;

/** Counts of one model. */
export interface ModelStats {
  requests: number;
  /** Replies whose usage was sent. */
  reported: number;
  promptTokens: number;
  completionTokens: number;
  /** Replies that the caller did not wait for. */
  abandoned: number;
}

export interface SampleUpstreamOptions {
  /** 0: any free port. */
  readonly port: number;
  /** Absent: the loopback. */
  readonly host?: string;
  /** The API key that callers must send, so that credentials are tested. Absent: anybody may call. */
  readonly key?: string;
}

export async function createSampleUpstream({ port, host = '127.0.0.1', key }: SampleUpstreamOptions) {
  const models = new Map<string, ModelStats>();
  /** The same as `GET /stats`. */
  const stats = { read: () => ({ models: Object.fromEntries(models) }) };
  const server = createServer((request, response) => {
    const answering = request.url === '/stats' ? sendJson(response, 200, stats.read()) : handle(request, response);
    Promise.resolve(answering).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 500, openai.toError(500, 'server_error', String(error)));
      else response.destroy();
    });
  });
  const { at } = await listen(server, { port, host });
  const close = async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
  // OpenAI's API begins at `/v1` below this.
  return { url: `http://${at}`, stats, close };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').replace(/\?.*$/, '').replace(/^\/v1\//, '/');
    const dialect = DIALECTS.get(path) ?? COUNTING.get(path) ?? openai;
    const refuse = (status: number, code: string, message: string) =>
      sendJson(response, status, dialect.toError(status, code, message));
    if (key !== undefined && !carries(request, key)) {
      return refuse(401, 'invalid_api_key', 'Incorrect API key provided to the sample upstream.');
    }
    const counted = COUNTING.get(path);
    const known = DIALECTS.has(path) || path === EMBEDDINGS || counted !== undefined;
    if (request.method !== 'POST' || !known) {
      return refuse(404, 'not_found', `There is no ${request.method} ${path} here.`);
    }
    const body = parseJson(await text(request));
    if (path === EMBEDDINGS) {
      const read = EmbeddingsRequest.safeParse(body);
      if (!read.success) return refuse(400, 'invalid_request', z.prettifyError(read.error));
      return answerWithEmbeddings(response, read.data, statsOf(read.data.model));
    }
    if (counted !== undefined) {
      const read = counted.request.safeParse({ max_tokens: 1, ...Object(body) });
      if (!read.success) return refuse(400, 'invalid_request', z.prettifyError(read.error));
      const { usage } = complete({ ...read.data, model: 'count' }, 0);
      return sendJson(response, 200, { input_tokens: usage?.prompt_tokens ?? 0 });
    }
    const read = dialect.request.safeParse(body);
    if (!read.success) return refuse(400, 'invalid_request', z.prettifyError(read.error));
    return answer(response, { dialect, request: read.data, stats: statsOf(read.data.model) });
  }

  function statsOf(model: string): ModelStats {
    const fresh = { requests: 0, reported: 0, promptTokens: 0, completionTokens: 0, abandoned: 0 };
    const known = models.get(model) ?? fresh;
    models.set(model, known);
    return known;
  }
}

const EMBEDDINGS = '/embeddings';
/** Paths that count a prompt, by the dialect of it. */
const COUNTING: ReadonlyMap<string, Dialect> = new Map([
  ['/messages/count_tokens', anthropic],
  ['/responses/input_tokens', responses],
]);

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['/chat/completions', openai],
  ['/messages', anthropic],
  ['/responses', responses],
]);

function carries({ headers }: IncomingMessage, key: string): boolean {
  return headers.authorization === `Bearer ${key}` || headers['x-api-key'] === key;
}

interface SampleRequest {
  readonly dialect: Dialect;
  readonly request: CompletionRequest;
  readonly stats: ModelStats;
}

async function answer(response: ServerResponse, { dialect, request, stats }: SampleRequest): Promise<void> {
  const completion = complete(request, Math.floor(Date.now() / 1000));
  const { hang, refuse, retryAfter, cutAfter } = completion.behaviour;
  stats.requests += 1;
  response.setHeader('x-request-id', `req-${completion.frame.id}`);
  response.once('close', () => {
    if (!response.writableFinished && cutAfter === undefined) stats.abandoned += 1;
  });
  if (hang) return;
  if (refuse !== undefined) {
    if (retryAfter !== undefined) response.setHeader('retry-after', retryAfter);
    return sendJson(response, refuse.status, dialect.toError(refuse.status, refuse.code, refuse.message));
  }
  const { type, pieces, usage } = (request.stream === true ? streamed : whole)(completion, dialect);
  const out = createBody(response, completion);
  for (const { after, text } of pieces) {
    await pause(after);
    if (response.destroyed) return;
    if (!response.headersSent) response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache' });
    out.write(text);
  }
  // The text written so far still arrives; the end of the body never does.
  if (cutAfter !== undefined) return void response.socket?.end();
  if (usage !== undefined) {
    stats.reported += 1;
    stats.promptTokens += usage.prompt_tokens;
    stats.completionTokens += usage.completion_tokens;
  }
  out.end();
}

function answerWithEmbeddings(response: ServerResponse, request: EmbeddingsRequest, stats: ModelStats) {
  const { refuse, withoutUsage = false } = BEHAVIOURS.get(request.model) ?? {};
  stats.requests += 1;
  if (refuse !== undefined) {
    return sendJson(response, refuse.status, openai.toError(refuse.status, refuse.code, refuse.message));
  }
  const { usage, ...reply } = embed(request);
  if (!withoutUsage) {
    stats.reported += 1;
    stats.promptTokens += usage.prompt_tokens;
  }
  sendJson(response, 200, withoutUsage ? reply : { ...reply, usage });
}

/** A body as it is written, each text after so many milliseconds, and the usage that it reports. */
function whole(completion: Completion, dialect: Dialect) {
  const { behaviour, tokens, usage } = completion;
  const { first, token } = behaviour.pace ?? { first: 0, token: 0 };
  const body = JSON.stringify(dialect.toReply(completion));
  const text = behaviour.cutAfter === undefined ? body : body.slice(0, body.length / 2);
  return { type: 'application/json', pieces: [{ after: first + token * tokens.length, text }], usage };
}

/** A body in server-sent events, likewise. */
function streamed(completion: Completion, dialect: Dialect) {
  const { behaviour, tokens } = completion;
  const pace = behaviour.pace ?? { first: 0, token: 2 };
  const { first, token, last, usage } = dialect.toStream(completion);
  const words = tokens.slice(0, behaviour.cutAfter).map((word) => ({ after: pace.token, text: token(word) }));
  const end = behaviour.cutAfter === undefined ? [{ after: 0, text: last }] : [];
  const pieces = [{ after: pace.first, text: first }, ...words, ...end];
  return { type: 'text/event-stream; charset=utf-8', pieces, usage };
}

/** The writer of a body: through gzip if the model compresses. */
function createBody(response: ServerResponse, { behaviour: { compressed } }: Completion): Writable {
  if (!compressed) return response;
  response.setHeader('content-encoding', 'gzip');
  // Flushed at every write: otherwise gzip would keep tokens until a block is full.
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  gzip.pipe(response);
  return gzip;
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const json = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
  response.end(json);
}

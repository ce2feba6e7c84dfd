// The sample upstream, which stands in for a provider on one machine: it streams, counts what it reports, and misbehaves by its models' names.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { constants, createGzip } from 'node:zlib';
import * as z from 'zod';
import { type Completion, type CompletionRequest, complete, type Usage } from './completion.ts';
import { anthropic, type Dialect, openai } from './dialects.ts';

export interface SampleUpstreamOptions {
  /** 0: any free port. */
  readonly port: number;
  /** The key that callers must send, so that credentials are really used. Absent: none. */
  readonly key?: string;
}

export interface SampleUpstream {
  /** Without `/v1`: that is where OpenAI's API begins. */
  readonly url: string;
  /** The same as `GET /stats`. */
  readonly stats: { read(): { readonly models: Readonly<Record<string, ModelStats>> } };
  close(): Promise<void>;
}

/** Of one model. */
export interface ModelStats {
  requests: number;
  /** Replies whose usage was sent. */
  reported: number;
  promptTokens: number;
  completionTokens: number;
  /** Replies that the caller did not wait for. */
  abandoned: number;
}

type Models = Map<string, ModelStats>;

/** Listens on the loopback only. */
export async function createSampleUpstream({ port, key }: SampleUpstreamOptions): Promise<SampleUpstream> {
  const models: Models = new Map();
  const stats = { read: () => ({ models: Object.fromEntries(models) }) };
  const server = createServer((request, response) => {
    const answering = request.url === '/stats' ? sendJson(response, 200, stats.read()) : handle(request, response);
    Promise.resolve(answering).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 500, openai.toError(500, 'server_error', String(error)));
      else response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve));
  const { port: taken } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
  return { url: `http://127.0.0.1:${taken}`, stats, close };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').replace(/\?.*$/, '').replace(/^\/v1\//, '/');
    const dialect = DIALECTS.get(path) ?? openai;
    const refuse = (status: number, code: string, message: string) =>
      sendJson(response, status, dialect.toError(status, code, message));
    if (key !== undefined && !carries(request, key)) {
      return refuse(401, 'invalid_api_key', 'Incorrect API key provided to the sample upstream.');
    }
    if (request.method !== 'POST' || !DIALECTS.has(path)) {
      return refuse(404, 'not_found', `There is no ${request.method} ${path} here.`);
    }
    const read = dialect.request.safeParse(parseJson(await text(request)));
    if (!read.success) return refuse(400, 'invalid_request', z.prettifyError(read.error));
    return answer(response, { dialect, request: read.data, stats: statsOf(models, read.data.model) });
  }
}

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['/chat/completions', openai],
  ['/messages', anthropic],
]);

function carries({ headers }: IncomingMessage, key: string): boolean {
  return headers.authorization === `Bearer ${key}` || headers['x-api-key'] === key;
}

function statsOf(models: Models, model: string): ModelStats {
  const fresh = { requests: 0, reported: 0, promptTokens: 0, completionTokens: 0, abandoned: 0 };
  const stats = models.get(model) ?? fresh;
  models.set(model, stats);
  return stats;
}

interface Asked {
  readonly dialect: Dialect;
  readonly request: CompletionRequest;
  readonly stats: ModelStats;
}

async function answer(response: ServerResponse, asked: Asked): Promise<void> {
  const { dialect, request, stats } = asked;
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
  return request.stream === true ? stream(response, completion, asked) : reply(response, completion, asked);
}

async function reply(response: ServerResponse, completion: Completion, { dialect, stats }: Asked): Promise<void> {
  const { behaviour, tokens, usage } = completion;
  const { first, token } = behaviour.pace ?? { first: 0, token: 0 };
  await pause(first + token * tokens.length);
  const body = JSON.stringify(dialect.toReply(completion));
  const out = open(response, completion, 'application/json');
  if (behaviour.cutAfter !== undefined) {
    out.write(body.slice(0, body.length / 2));
    return hangUp(response);
  }
  report(stats, usage);
  out.end(body);
}

async function stream(response: ServerResponse, completion: Completion, { dialect, stats }: Asked): Promise<void> {
  const { behaviour, tokens } = completion;
  const pace = behaviour.pace ?? { first: 0, token: 2 };
  const { first, token, last, usage } = dialect.toStream(completion);
  await pause(pace.first);
  const out = open(response, completion, 'text/event-stream; charset=utf-8');
  out.write(first);
  for (const [index, word] of tokens.entries()) {
    if (index === behaviour.cutAfter) return hangUp(response);
    await pause(pace.token);
    if (response.destroyed) return;
    out.write(token(word));
  }
  report(stats, usage);
  out.end(last);
}

function report(stats: ModelStats, usage: Usage | undefined): void {
  if (usage === undefined) return;
  stats.reported += 1;
  stats.promptTokens += usage.prompt_tokens;
  stats.completionTokens += usage.completion_tokens;
}

/** Writes the head of a reply; its body goes through gzip where the model compresses. */
function open(response: ServerResponse, { behaviour: { compressed } }: Completion, type: string) {
  const headers = { 'content-type': type, 'cache-control': 'no-cache' };
  response.writeHead(200, compressed ? { ...headers, 'content-encoding': 'gzip' } : headers);
  if (!compressed) return response;
  // Flushed at every write: a stream that waited for a full block would be none.
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  gzip.pipe(response);
  return gzip;
}

/** What was written still arrives; the end of the body never does. */
function hangUp(response: ServerResponse): void {
  response.socket?.end();
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  const json = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
  response.end(json);
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

// What stands in for a provider on one machine? A small server that speaks OpenAI's and Anthropic's dialect, streams, counts and misbehaves on request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { BEHAVIOURS } from './behaviours.ts';
import { chatCompletions } from './chat-completions.ts';
import { type Completion, type CompletionRequest, complete } from './completion.ts';
import { guide } from './guide.ts';
import { messages } from './messages.ts';
import { createStats, type Stats } from './stats.ts';
import { hangUp, open, sendJson, type Wire } from './wire.ts';

export interface SampleUpstreamOptions {
  /** 0: any free port. */
  readonly port: number;
  /** The bearer key it asks for, so that credentials are really used. Absent: none. */
  readonly key?: string;
}

export interface SampleUpstream {
  /** Without `/v1`: that is where the API begins. */
  readonly url: string;
  readonly port: number;
  readonly stats: Stats;
  close(): Promise<void>;
}

/** Listens on the loopback only. */
export async function createSampleUpstream({ port, key }: SampleUpstreamOptions): Promise<SampleUpstream> {
  const stats = createStats();
  const server = createServer((request, response) => {
    handle(request, response, stats, key).catch((error: unknown) => {
      if (!response.headersSent) chatCompletions.refuse(response, 500, 'server_error', String(error));
      else response.destroy();
    });
  });
  await listen(server, port);
  const address = server.address();
  const taken = typeof address === 'object' && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${taken}`,
    port: taken,
    stats,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, stats: Stats, key?: string): Promise<void> {
  const path = (request.url ?? '/').replace(/\?.*$/, '').replace(/^\/v1\//, '/');
  const route = `${request.method} ${path}`;
  const wire = WIRES.get(path) ?? chatCompletions;
  if (route === 'GET /') return send(response, 200, 'text/plain; charset=utf-8', guide(key !== undefined));
  if (route === 'GET /stats') return sendJson(response, 200, stats.read());
  if (key !== undefined && !carries(request, key)) {
    return wire.refuse(response, 401, 'invalid_api_key', 'Incorrect API key provided to the sample upstream.');
  }
  if (route === 'GET /models') return sendJson(response, 200, modelList());
  if (request.method !== 'POST' || !WIRES.has(path)) {
    return wire.refuse(response, 404, 'not_found', `There is no ${route} here.`);
  }
  const read = wire.read(parseJson(await readBody(request)));
  if ('wrong' in read) return wire.refuse(response, 400, 'invalid_request', read.wrong);
  stats.requested(read.request.model);
  return answer(response, wire, read.request, stats);
}

const WIRES: ReadonlyMap<string, Wire> = new Map([
  ['/chat/completions', chatCompletions],
  ['/messages', messages],
]);

function carries({ headers }: IncomingMessage, key: string): boolean {
  return headers.authorization === `Bearer ${key}` || headers['x-api-key'] === key;
}

async function answer(response: ServerResponse, wire: Wire, request: CompletionRequest, stats: Stats): Promise<void> {
  const completion = complete(request, Math.floor(Date.now() / 1000));
  const { behaviour } = completion;
  response.setHeader('x-request-id', `req-${completion.frame.id}`);
  response.once('close', () => {
    if (!response.writableFinished && behaviour.cutAfter === undefined) stats.abandoned(request.model);
  });
  if (behaviour.hang) return;
  if (behaviour.refuse !== undefined) {
    const { status, code, message } = behaviour.refuse;
    if (behaviour.retryAfter !== undefined) response.setHeader('retry-after', behaviour.retryAfter);
    return wire.refuse(response, status, code, message);
  }
  return request.stream === true
    ? wire.replyStream(response, completion, stats)
    : replyWhole(wire, response, completion, stats);
}

async function replyWhole(wire: Wire, response: ServerResponse, completion: Completion, stats: Stats): Promise<void> {
  const { behaviour, tokens, usage, frame } = completion;
  const { first, token } = behaviour.pace ?? { first: 0, token: 0 };
  await pause(first + token * tokens.length);
  const body = JSON.stringify(wire.toReply(completion));
  const out = open(response, behaviour, 'application/json');
  if (behaviour.cutAfter !== undefined) {
    out.write(body.slice(0, body.length / 2));
    return hangUp(response);
  }
  if (!behaviour.withoutUsage) stats.reported(frame.model, usage);
  out.end(body);
}

function modelList(): object {
  const data = [...BEHAVIOURS.keys()].map((id) => ({ id, object: 'model', created: 0, owned_by: 'sample' }));
  return { object: 'list', data };
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

// The answer of an upstream, read from one connection: undici delivers pieces as they arrive, the reader takes them
// from a queue. Providers that compress unasked are decoded.
import { pipeline, Readable } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher, Pool } from 'undici';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '#core/ports/serving.ts';
import type { Turn } from '../process/event-loop-batch.ts';
import { joinBody, lengthOf, MAX_JOINED, piecesOf } from './body.ts';

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;
type Next = IteratorResult<Uint8Array, undefined>;

/** Bytes that may wait for the reader; beyond this the connection is paused. */
const MAX_WAITING = 64 * 1024;
/** Pieces that wait are joined at this number: each takes some 100 bytes beside its content. */
const MAX_PIECES = 64;
const ABORTED = 'the request was aborted';

/** The pool and path of a URL. */
export interface Route {
  readonly pool: Pool;
  readonly path: string;
}

/**
 * Sends the request without Node's streams: they and their iteration cost more than everything else in a short reply.
 */
export function dispatch({ pool, path }: Route, request: UpstreamRequest, turn: Turn): Promise<UpstreamResponse> {
  const { timeouts, signal } = request;
  if (signal.aborted) return Promise.reject(unsent());
  const answer = new ResponseHandler(signal, turn);
  const { firstByte: headersTimeout, idle: bodyTimeout } = timeouts;
  pool.dispatch({ method: 'POST', path, ...bodyOf(request), headersTimeout, bodyTimeout }, answer);
  return answer.response.promise;
}

/** The headers and the body. A long one is not copied, nor kept until the reply has ended. */
function bodyOf({ headers, body }: UpstreamRequest): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  const length = lengthOf(body);
  if (length <= MAX_JOINED) return { headers, body: joinBody(body, length) };
  // The library's types do not name iterables, which it takes (Dispatcher.md).
  const pieces = piecesOf(body) as unknown as Readable;
  return { headers: { ...headers, 'content-length': `${length}` }, body: pieces };
}

/**
 * The handler of one request: undici's events in, the port's promises out. A class, because one is made per request and
 * methods are shared.
 */
class ResponseHandler implements Dispatcher.DispatchHandler, AsyncIterableIterator<Uint8Array, undefined> {
  readonly response = Promise.withResolvers<UpstreamResponse>();
  readonly #signal: UpstreamRequest['signal'];
  readonly #turn: Turn;
  readonly #onAbort = (): void => this.#stop();
  readonly #hasEnded = (): boolean => this.#ended;
  readonly #onPieces = (): void => {
    const reader = this.#takeReader();
    if (reader !== undefined) reader.resolve(this.#take());
  };
  #controller: Controller | undefined;
  /** Pieces that have arrived and are not yet read. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  /** The reader that waits for the next pieces. */
  #reader: PromiseWithResolvers<Next> | undefined;
  /** The head of the response has arrived. */
  #hasBegun = false;
  /** The last piece has arrived, or `#error` says why none will. */
  #ended = false;
  #error: Error | undefined;

  constructor(signal: UpstreamRequest['signal'], turn: Turn) {
    this.#signal = signal;
    this.#turn = turn;
    signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#error !== undefined) controller.abort(this.#error);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#hasBegun = true;
    const encoding = String(headers['content-encoding'] ?? 'identity').toLowerCase();
    const body = NOT_ENCODED.has(encoding) ? this : decodeBody(this, encoding);
    // The words of a refusal are not needed: its status counts.
    if (body === undefined && status <= 299) {
      const broken = new UpstreamError(
        'broken',
        `the upstream answers with the content-encoding ${encoding.slice(0, 40)}`,
      );
      this.#break(broken);
      controller.abort(broken);
      return;
    }
    // A decoded body ends later than the transfer, so it must be read to its end.
    const hasEnded = body === this ? this.#hasEnded : undefined;
    this.#turn(() => this.response.resolve({ status, headers: joinHeaders(headers), body: body ?? this, hasEnded }));
  }

  /** Chunks of one turn are read as one piece. */
  onResponseData(controller: Controller, piece: Uint8Array): void {
    if (this.#pieces.length === 0 && this.#reader !== undefined) this.#turn(this.#onPieces);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#pieces.length === MAX_PIECES) this.#pieces = [joinPieces(this.#pieces, this.#bytes)];
    if (this.#bytes > MAX_WAITING) controller.pause();
  }

  onResponseEnd(): void {
    this.#end();
    if (this.#pieces.length === 0) this.#takeReader()?.resolve(END);
  }

  onResponseError(_: Controller | null, error: Error): void {
    if (!this.#ended) this.#break(toUpstreamError(error, this.#isReached(error)));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The pieces since the last read, or the next to arrive. One read at a time. */
  next(): Promise<Next> {
    if (this.#pieces.length > 0) return Promise.resolve(this.#take());
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(END);
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  /** Ends the reading early: the connection is closed, so that the provider stops. */
  return(): Promise<Next> {
    if (!this.#ended) this.#stop();
    this.#pieces = [];
    this.#bytes = 0;
    return Promise.resolve(END);
  }

  /** Takes all waiting pieces. */
  #take(): Next {
    const value = joinPieces(this.#pieces, this.#bytes);
    this.#pieces = [];
    this.#bytes = 0;
    if (this.#controller?.paused === true) this.#controller.resume();
    return { done: false, value };
  }

  /** The controller comes when undici has a connection for the request, after any handshake, just before it writes. */
  #isReached(error: Error): boolean {
    return this.#controller !== undefined && (this.#hasBegun || !isNotHttp(error));
  }

  #stop(): void {
    const why = this.#controller === undefined ? unsent() : new UpstreamError('broken', ABORTED);
    this.#pieces = [];
    this.#bytes = 0;
    this.#break(why);
    this.#controller?.abort(why);
  }

  /** Ends with an error, which is read after the pieces that have arrived. */
  #break(error: Error): void {
    this.#end();
    this.#error = error;
    this.response.reject(error);
    if (this.#pieces.length === 0) this.#takeReader()?.reject(this.#error);
  }

  #end(): void {
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  #takeReader(): PromiseWithResolvers<Next> | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}

function unsent(): UpstreamError {
  return new UpstreamError('unsent', ABORTED);
}

/** One array of all pieces, in pooled memory where it fits: a new allocation costs as much as the copy. */
function joinPieces(pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length);
}

/** No encoding; the last three are none, and some servers write them. */
const NOT_ENCODED: ReadonlySet<string> = new Set(['identity', '', 'none', 'utf-8']);

const END: Next = { done: true, value: undefined };

/** Headers with lower-case names; repeated ones are joined as in RFC 9110. */
function joinHeaders(headers: Headers): Readonly<Record<string, string>> {
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = value.join(', ');
    else if (value === undefined) delete headers[name];
  }
  // The loop above leaves only strings.
  return headers as Record<string, string>;
}

/**
 * The decoded bytes as they arrive; undefined for an encoding that is not decoded. The gateway asks for none: gzip and
 * deflate are decoded because some proxies compress all the same. A decoder of Brotli keeps up to 16 MiB for as long as
 * its stream.
 */
function decodeBody(body: AsyncIterable<Uint8Array>, encoding: string): AsyncIterable<Uint8Array> | undefined {
  const decoder = decoderFor(encoding);
  if (decoder === undefined) return undefined;
  // The reader of the decoder gets an error; the callback only keeps it from being thrown twice.
  return bytesOf(pipeline(Readable.from(body), decoder, () => {}));
}

function decoderFor(encoding: string) {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip();
  return encoding === 'deflate' ? createInflate() : undefined;
}

async function* bytesOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // Leaving this loop early destroys the decoder, which ends the answer that feeds it: the provider stops.
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw toUpstreamError(error, true);
  }
}

const TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

/** A failed call in the port's terms: unsent, refused, timeout or broken. An error of our own code stays what it is. */
export function toUpstreamError(error: unknown, isReached: boolean): Error {
  if (error instanceof UpstreamError || isProgramError(error)) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || isConnecting(error)) {
    return new UpstreamError('unsent', `the upstream failed: ${code}`, { cause: error });
  }
  const kind = !isReached ? 'refused' : TIMEOUTS.has(code) ? 'timeout' : 'broken';
  return new UpstreamError(kind, `the upstream failed: ${code || 'unknown'}`, { cause: error });
}

/** Errors of the network and of its libraries have codes. */
const isProgramError = (error: unknown): error is Error =>
  (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) && !('code' in error);

/**
 * The first bytes of the response are not HTTP: who wrote them took no request. undici's error has no code for this.
 */
const isNotHttp = ({ name, message }: Error): boolean =>
  name === 'HTTPParserError' && message.includes('Expected HTTP/');

/** Whether the system gave up before there was a connection. */
function isConnecting(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'connect' && codeOf(error) === 'ETIMEDOUT';
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses were tried; they rarely fail for different reasons.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : error.name;
}

// The response of an upstream. undici delivers pieces as they arrive, and the reader takes them from a queue. A
// response that is compressed, although the gateway did not request it, is decoded.
import { pipeline, Readable } from 'node:stream';
import { createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher, Pool } from 'undici';
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '#core/ports/upstream.ts';
import type { Turn } from '../process/event-loop-batch.ts';
import { joinBody, lengthOf, MAX_JOINED, piecesOf } from './body.ts';

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;
type Next = IteratorResult<Uint8Array, undefined>;

/** The maximum bytes that wait for the reader. If more wait, the connection is paused. */
const MAX_WAITING = 64 * 1024;
/** The maximum number of waiting pieces before they are joined: each takes some 100 bytes beside its content. */
const MAX_PIECES = 64;
const ABORTED = 'the request was aborted';

/** The connections to one origin. */
export type UpstreamPool = Pick<Pool, 'dispatch'> & { close(): Promise<void>; destroy(): Promise<void> };

/** The pool and path of a URL. */
export interface Destination {
  readonly pool: UpstreamPool;
  readonly path: string;
}

/**
 * Sends the request without Node's streams: these and their iteration cost more than all other work of a short reply.
 */
export function dispatch({ pool, path }: Destination, request: UpstreamRequest, turn: Turn): Promise<UpstreamResponse> {
  const { timeouts, signal } = request;
  if (signal.aborted) return Promise.reject(unsent());
  const handler = new ResponseHandler(signal, turn);
  const { firstByte: headersTimeout, idle: bodyTimeout } = timeouts;
  pool.dispatch({ method: 'POST', path, ...bodyOf(request), headersTimeout, bodyTimeout }, handler);
  return handler.response.promise;
}

/** The headers and the body. A long body is neither copied nor kept until the reply has ended. */
function bodyOf({ headers, body }: UpstreamRequest): Pick<Dispatcher.DispatchOptions, 'headers' | 'body'> {
  const length = lengthOf(body);
  if (length <= MAX_JOINED) return { headers, body: joinBody(body, length) };
  // undici accepts iterables, but its types do not (Dispatcher.md).
  const pieces = piecesOf(body) as unknown as Readable;
  return { headers: { ...headers, 'content-length': `${length}` }, body: pieces };
}

/**
 * The handler of one request: it turns undici's events into the port's promises. A class, because each request has one:
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
  /** Pieces that have arrived and are not read. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  /** The reader that waits for the next pieces. */
  #reader: PromiseWithResolvers<Next> | undefined;
  /** The headers of the response have arrived. */
  #hasBegun = false;
  /** The last piece has arrived, or `#error` has the reason why none will. */
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
    // A refusal is passed on even if its body cannot be decoded: its status is enough.
    if (body === undefined && status <= 299) {
      const broken = new UpstreamError(
        'broken',
        `the upstream answers with the content-encoding ${encoding.slice(0, 40)}`,
      );
      this.#break(broken);
      controller.abort(broken);
      return;
    }
    // A decoded body ends after the transfer, so it must be read to its end.
    const hasEnded = body === this ? this.#hasEnded : undefined;
    this.#turn(() => this.response.resolve({ status, headers: joinHeaders(headers), body: body ?? this, hasEnded }));
  }

  /** Adds a piece. All pieces of one turn are read together. */
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

  /** The pieces since the last read, or the next ones. One read at a time. */
  next(): Promise<Next> {
    if (this.#pieces.length > 0) return Promise.resolve(this.#take());
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(END);
    this.#reader = Promise.withResolvers();
    return this.#reader.promise;
  }

  /** Ends the reading early. The connection is closed, so that the provider stops. */
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

  /**
   * Whether the provider may have received the request. undici passes a controller when it has a connection, after any
   * handshake, just before it writes.
   */
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

  /** Ends with an error, which follows the pieces that have arrived. */
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

/** All pieces as one array, in pooled memory if it fits: a new allocation costs as much as the copy. */
function joinPieces(pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length);
}

/**
 * Values of `content-encoding` for a body that is not encoded. Only the first is a standard one; some servers write the
 * others.
 */
const NOT_ENCODED: ReadonlySet<string> = new Set(['identity', '', 'none', 'utf-8']);

const END: Next = { done: true, value: undefined };

/** Headers with lower-case names. Repeated headers are joined as in RFC 9110. */
function joinHeaders(headers: Headers): Readonly<Record<string, string>> {
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = value.join(', ');
    else if (value === undefined) delete headers[name];
  }
  // After the loop all values are strings.
  return headers as Record<string, string>;
}

/**
 * The decoded bytes as they arrive; undefined: the encoding is not decoded. The gateway requests none, but some proxies
 * compress by gzip or deflate. A decoder of Brotli would keep up to 16 MiB until its stream ends.
 */
function decodeBody(body: AsyncIterable<Uint8Array>, encoding: string): AsyncIterable<Uint8Array> | undefined {
  const decoder = decoderFor(encoding);
  if (decoder === undefined) return undefined;
  // The reader of the decoder gets its errors. The callback only prevents a second throw.
  return bytesOf(pipeline(Readable.from(body), decoder, () => {}));
}

function decoderFor(encoding: string) {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip();
  return encoding === 'deflate' ? createInflate() : undefined;
}

async function* bytesOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // An early end of this loop destroys the decoder and ends the response that feeds it: the provider stops.
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw toUpstreamError(error, true);
  }
}

const TIMEOUTS: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'ETIMEDOUT']);

/**
 * A failed call as an error of the port: unsent, refused, timeout or broken. An error of our own code stays unchanged.
 */
export function toUpstreamError(error: unknown, isReached: boolean): Error {
  if (error instanceof UpstreamError || isProgramError(error)) return error;
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || isConnecting(error)) {
    return new UpstreamError('unsent', `the upstream failed: ${code}`, { cause: error });
  }
  const kind = !isReached ? 'refused' : TIMEOUTS.has(code) ? 'timeout' : 'broken';
  return new UpstreamError(kind, `the upstream failed: ${code || 'unknown'}`, { cause: error });
}

/** Whether an error comes from our own code: errors of the network and its libraries have codes. */
const isProgramError = (error: unknown): error is Error =>
  (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) && !('code' in error);

/**
 * Whether the first bytes of the response are not HTTP: their sender took no request. undici's error has no code for
 * this.
 */
const isNotHttp = ({ name, message }: Error): boolean =>
  name === 'HTTPParserError' && message.includes('Expected HTTP/');

/** Whether the system stopped before there was a connection. */
function isConnecting(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'connect' && codeOf(error) === 'ETIMEDOUT';
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  // The code for the first address: several addresses rarely fail for different reasons.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : error.name;
}

// How is one answer read from a connection? undici hands its pieces to us as they arrive, and whoever reads takes them from a queue.
import type { Dispatcher, Pool } from 'undici';
import { UpstreamBroke, type UpstreamRequest, type UpstreamResponse } from '#core/ports/serving.ts';
import { toBroken } from './broken.ts';
import { decoded } from './decoded.ts';

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;
type Next = IteratorResult<Uint8Array, undefined>;

interface Reader {
  readonly resolve: (next: Next) => void;
  readonly reject: (error: Error) => void;
}

/** Bytes that wait for their reader: beyond this the provider has to wait. */
const MOST_WAITING = 64 * 1024;
const UNWANTED = 'nobody wants the answer any more';

/** Without Node's streams in between: they and their iteration cost more than all the rest of a short reply. */
export function ask(pool: Pool, path: string, request: UpstreamRequest): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const { headers, body, timeouts, signal } = request;
    if (signal.aborted) return reject(unsent());
    const answer = new Answer(signal, resolve, reject);
    const limits = { headersTimeout: timeouts.firstByte, bodyTimeout: timeouts.idle };
    pool.dispatch({ method: 'POST', path, headers, body, ...limits }, answer);
  });
}

/** What undici tells of one request, as the port promises it. A class, because one is made for each request: methods are shared. */
class Answer implements Dispatcher.DispatchHandler, AsyncIterableIterator<Uint8Array, undefined> {
  readonly #signal: UpstreamRequest['signal'];
  readonly #begin: (response: UpstreamResponse) => void;
  readonly #fail: (error: Error) => void;
  readonly #onAbort = (): void => this.#stop();
  readonly #hasEnded = (): boolean => this.#ended;
  readonly #onPieces = (): void => {
    const reader = this.#takeReader();
    if (reader !== undefined) reader.resolve(this.#take());
  };
  #controller: Controller | undefined;
  /** Arrived, and not yet read. */
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  /** Who waits for the next pieces. */
  #reader: Reader | undefined;
  /** The last piece has arrived, or none will, and why. */
  #ended = false;
  #error: Error | undefined;

  constructor(
    signal: UpstreamRequest['signal'],
    begin: (response: UpstreamResponse) => void,
    fail: (error: Error) => void,
  ) {
    this.#signal = signal;
    this.#begin = begin;
    this.#fail = fail;
    signal.addEventListener('abort', this.#onAbort);
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#error !== undefined) controller.abort(this.#error);
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    const encoding = headers['content-encoding'];
    const body = encoding === undefined ? this : (decoded(this, String(encoding)) ?? this);
    // What is unpacked ends later, and is let go by reading it.
    const hasEnded = body === this ? this.#hasEnded : undefined;
    this.#begin({ status, headers: joined(headers), body, hasEnded });
  }

  /** Told of each chunk of the transfer, all that came in one packet before anybody else runs: then they are read as one. */
  onResponseData(controller: Controller, piece: Uint8Array): void {
    if (this.#pieces.length === 0 && this.#reader !== undefined) queueMicrotask(this.#onPieces);
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes > MOST_WAITING) controller.pause();
  }

  onResponseEnd(): void {
    this.#end();
    if (this.#pieces.length === 0) this.#takeReader()?.resolve(END);
  }

  onResponseError(_: Controller | null, error: Error): void {
    if (!this.#ended) this.#break(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** All that has come since, or the next that comes. One at a time. */
  next(): Promise<Next> {
    if (this.#pieces.length > 0) return Promise.resolve(this.#take());
    if (this.#error !== undefined) return Promise.reject(this.#error);
    if (this.#ended) return Promise.resolve(END);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Nobody reads on: the connection is closed, so that the provider stops. */
  return(): Promise<Next> {
    if (!this.#ended) this.#stop();
    this.#pieces = [];
    this.#bytes = 0;
    return Promise.resolve(END);
  }

  /** All that waits. */
  #take(): Next {
    const value = whole(this.#pieces, this.#bytes);
    this.#pieces = [];
    this.#bytes = 0;
    if (this.#controller?.paused === true) this.#controller.resume();
    return { done: false, value };
  }

  #stop(): void {
    // undici gives us a controller when it has a connection for the request, just before it writes to it.
    const why = this.#controller === undefined ? unsent() : new Error(UNWANTED);
    this.#pieces = [];
    this.#bytes = 0;
    this.#break(why);
    this.#controller?.abort(why);
  }

  /** What has arrived is read before the error is. */
  #break(error: Error): void {
    this.#end();
    this.#error = toBroken(error);
    this.#fail(this.#error);
    if (this.#pieces.length === 0) this.#takeReader()?.reject(this.#error);
  }

  #end(): void {
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.#onAbort);
  }

  #takeReader(): Reader | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }
}

function unsent(): UpstreamBroke {
  return new UpstreamBroke('unsent', UNWANTED);
}

/** Into memory that Node has at hand, where that is enough: memory of its own costs as much again as the copying. */
function whole(pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces, length);
}

const END: Next = { done: true, value: undefined };

/** Names come in lower case; a header that is sent twice is joined as RFC 9110 says. */
function joined(headers: Headers): Readonly<Record<string, string>> {
  for (const name in headers) {
    const value = headers[name];
    if (Array.isArray(value)) headers[name] = value.join(', ');
    else if (value === undefined) delete headers[name];
  }
  // The loop above has left nothing else.
  return headers as Record<string, string>;
}

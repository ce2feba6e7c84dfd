// An HTTP exchange of Node's server. With the web's `Request` and `Response`, a short one would cost twice as much.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OwnedTurn } from '#adapters/process/event-loop-batch.ts';
import type { HttpExchange, ReadBody, TurnOwner } from '#core/ports/http-exchange.ts';

type Headers = Readonly<Record<string, string>>;

/**
 * Milliseconds for which the rest of a refused body is discarded, so that its client can read the reason. Then the
 * connection is closed.
 */
const LINGER = 2_000;

const NOTHING = new Uint8Array(0);
/** The bytes above which a body is long. */
const LONG = 64 * 1024;
const atOnce: OwnedTurn = (_, work) => work();

/** The exchange. A class, because each request has one: methods are shared. */
export class NodeExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #long: OwnedTurn;
  /** The head, until it is written: a body that follows immediately is sent in one piece with it. */
  #head: { readonly status: number; readonly headers: Headers } | undefined;
  #stopReading = (): void => {};

  /** `long`: the turns of work that blocks everything else. */
  constructor(incoming: IncomingMessage, outgoing: ServerResponse, long: OwnedTurn = atOnce) {
    this.#long = long;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.method = incoming.method ?? 'GET';
    const url = incoming.url ?? '/';
    this.path = pathOf(url);
    this.query = queryOf(url);
  }

  header(name: string): string | undefined {
    const value = this.#incoming.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  readBody(...[accept]: Parameters<ReadBody>): ReturnType<ReadBody> {
    const incoming = this.#incoming;
    if (incoming.complete && !incoming.destroyed) {
      const body: Uint8Array = incoming.read() ?? NOTHING;
      return Promise.resolve(accept(body.length) ?? body);
    }
    const announced = Number(incoming.headers['content-length'] ?? 0);
    return new Promise((resolve) => {
      // A long body is read into one buffer. Joined pieces would take its memory twice.
      const buffer = announced > LONG ? Buffer.allocUnsafeSlow(announced) : undefined;
      const pieces: Uint8Array[] = [];
      let length = 0;
      const finish = (body: Awaited<ReturnType<ReadBody>>) => {
        incoming.off('data', take).off('end', end).off('error', fail).off('close', fail);
        this.#stopReading = () => {};
        resolve(body);
      };
      const take = (piece: Uint8Array) => {
        const refused = accept(piece.length);
        if (refused !== undefined) {
          incoming.pause();
          return finish(refused);
        }
        if (buffer === undefined) pieces.push(piece);
        else buffer.set(piece, length);
        length += piece.length;
      };
      const end = () => finish(buffer ?? whole(pieces));
      const fail = () => finish('broken');
      if (incoming.destroyed || incoming.readableEnded) return fail();
      this.#stopReading = fail;
      incoming.on('data', take).on('end', end).on('error', fail).on('close', fail);
    });
  }

  turn(of: TurnOwner): Promise<void> {
    return new Promise((resolve) => this.#long(of, resolve));
  }

  stopReading(): void {
    this.#incoming.pause();
    this.#stopReading();
  }

  begin(status: number, headers: Headers): void {
    this.#head = { status, headers };
  }

  flush(): void {
    if (this.#outgoing.destroyed) return;
    this.#writeHead();
    this.#outgoing.flushHeaders();
  }

  hasBegun(): boolean {
    return this.#outgoing.headersSent;
  }

  write(pieces: ReadonlyArray<Uint8Array>): boolean {
    if (this.#outgoing.destroyed) return true;
    this.#writeHead();
    return this.#outgoing.write(whole(pieces));
  }

  drained(): Promise<void> {
    const outgoing = this.#outgoing;
    const event = outgoing.writableEnded ? 'finish' : 'drain';
    return new Promise((resolve) => {
      const done = () => {
        outgoing.off(event, done).off('close', done);
        resolve();
      };
      const isWaiting = outgoing.writableEnded ? !outgoing.writableFinished : outgoing.writableNeedDrain;
      if (outgoing.destroyed || !isWaiting) return resolve();
      outgoing.on(event, done).on('close', done);
    });
  }

  end(body: ReadonlyArray<Uint8Array> | string): void {
    if (this.#outgoing.destroyed) return;
    // Node takes three times the room of a text that waits for its client.
    const text = typeof body === 'string' && body.length > LONG ? Buffer.from(body) : body;
    const bytes = typeof text === 'string' || text instanceof Uint8Array ? text : whole(text);
    this.#writeHead(Buffer.byteLength(bytes));
    this.#outgoing.end(bytes);
    if (!this.#incoming.complete) this.#discardBody();
  }

  destroy(last: ReadonlyArray<Uint8Array> = []): void {
    const outgoing = this.#outgoing;
    if (outgoing.destroyed) return;
    if (last.length === 0) return void outgoing.destroy();
    this.#writeHead();
    outgoing.write(whole(last), () => outgoing.destroy());
  }

  hasLeft(): boolean {
    return this.#outgoing.destroyed;
  }

  onLeave(listener: () => void): void {
    const outgoing = this.#outgoing;
    // The event comes also when everything has been written.
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) listener();
    });
  }

  /** `length`: of the reply, if it is known. */
  #writeHead(length?: number): void {
    if (this.#head === undefined) return;
    const { status, headers } = this.#head;
    this.#head = undefined;
    this.#outgoing.writeHead(status, length === undefined ? headers : { ...headers, 'content-length': length });
  }

  #discardBody(): void {
    const incoming = this.#incoming;
    const cut = setTimeout(() => incoming.destroy(), LINGER).unref();
    incoming.once('close', () => clearTimeout(cut)).resume();
  }
}

function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  // A client of a proxy sends the whole address.
  return path.startsWith('/') ? path : path.replace(/^[a-z]+:\/\/[^/]*/i, '') || '/';
}

function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start === -1 ? '' : url.slice(start).replace(/#.*$/s, '');
}

/** The pieces in one: each alone would be a chunk of the transfer. */
function whole(pieces: ReadonlyArray<Uint8Array>): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
}

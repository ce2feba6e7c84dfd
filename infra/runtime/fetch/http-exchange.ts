// An HTTP exchange of a fetch handler: the reply becomes a `Response`, whole or as a stream that is written to.
import { concat, Pieces, toUtf8 } from '#core/json/bytes.ts';
import type { HttpExchange, ReadBody } from '#core/ports/http-exchange.ts';

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * The exchange of this request, and its reply, which comes when it begins. `room`: pieces that wait for the client
 * before it counts as slow.
 */
export function toExchange(request: Request, room = 16): { exchange: HttpExchange; response: Promise<Response> } {
  const { promise: response, resolve: respond } = Promise.withResolvers<Response>();
  return { exchange: new WebExchange(request, respond, room), response };
}

class WebExchange implements HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #request: Request;
  readonly #respond: (response: Response) => void;
  readonly #room: number;
  #head: { readonly status: number; readonly headers: Readonly<Record<string, string>> } = { status: 200, headers: {} };
  #client: ReadableStreamDefaultController<Uint8Array> | undefined;
  #hasEnded = false;
  #hasLeft = false;
  #stopReading: () => void = () => {};
  #onLeave: () => void = () => {};
  #onRoom: () => void = () => {};

  constructor(request: Request, respond: (response: Response) => void, room: number) {
    this.#request = request;
    this.#respond = respond;
    this.#room = room;
    this.method = request.method;
    const { pathname, search } = new URL(request.url);
    this.path = pathname;
    this.query = search;
    if (request.signal.aborted) this.#hasLeft = true;
    else request.signal.addEventListener('abort', () => this.#leave(), { once: true });
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined;
  }

  async readBody(...[accept]: Parameters<ReadBody>): ReturnType<ReadBody> {
    const pieces = new Pieces();
    const reader = this.#request.body?.getReader();
    this.#stopReading = () => void reader?.cancel().catch(() => undefined);
    try {
      for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) {
        const refused = accept(piece.value.length);
        if (refused !== undefined) {
          this.#stopReading();
          return refused;
        }
        pieces.add(piece.value);
      }
      return pieces.take();
    } catch {
      return 'broken';
    }
  }

  stopReading(): void {
    this.#stopReading();
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    // Throws for what cannot be sent.
    new Headers(headers);
    this.#head = { status, headers };
  }

  flush(): void {
    this.#stream();
  }

  hasBegun(): boolean {
    return this.#hasEnded || this.#client !== undefined;
  }

  write(pieces: ReadonlyArray<Uint8Array>): boolean {
    if (this.#hasLeft) return true;
    const client = this.#stream();
    client?.enqueue(whole(pieces));
    return (client?.desiredSize ?? 1) > 0;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onRoom = resolve;
      if (this.#hasLeft || this.#hasEnded || (this.#client?.desiredSize ?? 1) > 0) resolve();
    });
  }

  end(body: ReadonlyArray<Uint8Array> | string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (this.#client === undefined) {
      this.#respond(new Response(typeof body === 'string' ? body : whole(body), this.#head));
      return;
    }
    if (this.#hasLeft) return;
    const bytes = typeof body === 'string' ? toUtf8(body) : whole(body);
    if (bytes.length > 0) this.#client.enqueue(bytes);
    this.#client.close();
  }

  destroy(last: ReadonlyArray<Uint8Array> = []): void {
    if (this.#hasEnded || this.#hasLeft) return;
    this.#hasEnded = true;
    const client = this.#stream();
    const breakOff = () => client?.error(new Error('the reply was broken off'));
    if (last.length === 0) return void breakOff();
    client?.enqueue(whole(last));
    // An error discards what waits for the client; what the platform has just taken is still to be written.
    this.#onRoom = () => {
      if (client?.desiredSize === this.#room) setTimeout(breakOff);
    };
    this.#onRoom();
  }

  hasLeft(): boolean {
    return this.#hasLeft;
  }

  onLeave(listener: () => void): void {
    this.#onLeave = listener;
  }

  #stream(): ReadableStreamDefaultController<Uint8Array> | undefined {
    if (this.#client !== undefined) return this.#client;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (client) => {
          this.#client = client;
        },
        pull: () => this.#onRoom(),
        cancel: () => this.#leave(),
      },
      new CountQueuingStrategy({ highWaterMark: this.#room }),
    );
    this.#respond(new Response(body, this.#head));
    return this.#client;
  }

  #leave(): void {
    if (this.#hasLeft || this.#hasEnded) return;
    this.#hasLeft = true;
    this.#onRoom();
    this.#onLeave();
  }
}

function whole(pieces: ReadonlyArray<Uint8Array>): Bytes {
  // Bytes of a stream or an encoder are never in shared memory.
  return concat(pieces) as Bytes;
}

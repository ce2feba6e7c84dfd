// How does a stream reach the client? Piece by piece as it came, counted on the way, settled before its last byte.
import type { Connection } from '#core/ports/connection.ts';
import type { ReplyStream } from '#core/ports/reply.ts';
import { reasonOf } from '#core/reason.ts';
import { type Book, UNBOOKED } from './book.ts';
import type { Background, GatewayDeps, Visit } from './deps.ts';
import type { StreamExchange } from './exchange.ts';
import { cutWords, endWords, errorWords } from './last-words.ts';
import { createMeter, type Meter } from './meter.ts';
import { add, type Output, toOutput } from './output.ts';
import type { Line, ReplyEnd } from './record.ts';
import { NOTHING, type Piece } from './wire/dialect.ts';

/** An answer that is streamed, and the headers that it begins with. */
export interface Streamed {
  readonly exchange: StreamExchange;
  readonly line: Line;
  readonly headers: Readonly<Record<string, string>>;
}

export type Relay = (streamed: Streamed, visit: Visit) => Response;

type RelayDeps = Pick<GatewayDeps, 'ledger' | 'timer' | 'log'> & {
  readonly book: Book;
};

/** An upstream that has said all is heard for so long: for its count, and so that its connection can be used again. */
const LINGER = 1_000;
/** The upstream has no more to say. */
const ENDED: ReadonlyArray<Piece> = [];
const NO_BYTES: ReadonlyArray<Uint8Array> = [];

export function createRelay(deps: Pick<GatewayDeps, 'ledger' | 'timer' | 'log'>, book: Book): Relay {
  const all = { ...deps, book };
  return function relay(streamed, { background, connection }) {
    const relayed = new Relayed(all, streamed, background);
    return connection?.openReply === undefined ? relayed.pulled() : relayed.pushed(connection as Pushed);
  };
}

type Pushed = Pick<Connection, 'openReply'>;

/** One stream. A class, because methods are shared: as closures they took more memory than all else that is kept of it. */
class Relayed {
  readonly #deps: RelayDeps;
  readonly #streamed: Streamed;
  readonly #background: Background;
  readonly #meter: Meter;
  #moving: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  /** Undefined before the stream has started, and after the client has left. */
  #output: Output | undefined;
  #hasRoom = true;
  #hasSpoken = false;

  constructor(deps: RelayDeps, streamed: Streamed, background: Background) {
    this.#deps = deps;
    this.#streamed = streamed;
    this.#background = background;
    const { reservation, target, lost: before } = streamed.exchange;
    const meter = createMeter(reservation, target, before);
    this.#meter = meter;
    // Without a limit nobody can take what its hold leaves.
    const lost = target.limit.cutAt === undefined ? undefined : () => this.#background(this.#finish('cut'));
    deps.ledger.progress(reservation.hold, () => meter.settlement().cost, lost);
  }

  /** Through a web stream, which asks for more when it has room. */
  pulled(): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#begin(toOutput(controller));
        this.#showFirst();
      },
      pull: () => this.#pump(),
      cancel: () => this.#background(this.#leave()),
    });
    return new Response(body, { headers: this.#streamed.headers });
  }

  /** To a connection that is written to, and says when it has no room. */
  pushed(connection: Pushed): Response {
    try {
      const { stream, response } = connection.openReply(200, this.#streamed.headers);
      this.#begin(stream);
      this.#background(this.#push(stream));
      return response;
    } catch (error) {
      // A header that cannot be sent, say: nobody will read on, and the hold must not wait for that.
      this.#background(this.#finish('broken'));
      throw error;
    }
  }

  async #push(stream: ReplyStream): Promise<void> {
    try {
      this.#showFirst();
      // What the upstream has said so far shows nothing, and nobody knows when it goes on.
      if (!this.#hasSpoken && this.#ending === undefined) stream.flush();
      while (this.#ending === undefined) {
        if (!this.#hasRoom) await stream.drained();
        this.#hasRoom = true;
        await this.#pump();
      }
      await this.#ending;
    } catch (error) {
      stream.destroy();
      if (this.#ending === undefined) await this.#fail(error).catch(() => {});
    }
  }

  #begin(to: Output): void {
    this.#output = to;
    this.#streamed.exchange.deadline.onEnd((why) =>
      this.#background(why === 'left' ? this.#leave() : this.#finish('timeout')),
    );
  }

  /** Unless the exchange had ended before anybody listened. */
  #showFirst(): void {
    if (this.#ending === undefined) this.#forward(this.#streamed.exchange.first);
  }

  /** Moves pieces until the client has got something, or the reply has ended. One at a time, whoever asks. */
  #pump(): Promise<void> {
    this.#moving ??= this.#move();
    return this.#moving;
  }

  async #move(): Promise<void> {
    const { reader, rest } = this.#streamed.exchange;
    for (let moved = false; !moved && this.#ending === undefined; ) {
      let pieces: ReadonlyArray<Piece>;
      try {
        const chunk = await rest.next();
        pieces = chunk.done ? reader.end() : reader.push(chunk.value);
        if (chunk.done && pieces.length === 0) pieces = ENDED;
      } catch {
        pieces = ENDED;
      }
      if (this.#ending === undefined) moved = pieces === ENDED ? this.#end(this.#whole()) : this.#forward(pieces);
    }
    if (this.#ending !== undefined) await this.#ending;
    this.#moving = undefined;
  }

  /** An end without `[DONE]` is a whole reply only when its content had ended. */
  #whole(): 'complete' | 'broken' {
    return this.#meter.finished ? 'complete' : 'broken';
  }

  #forward(pieces: ReadonlyArray<Piece>, shown: Uint8Array[] = []): boolean {
    for (const piece of pieces) {
      // The provider's own words about its failure stay with us: they may name its account.
      if (piece.error !== undefined) return this.#end('broken', shown);
      if (this.#meter.exceeds(piece)) {
        return piece.events === undefined ? this.#end('cut', shown) : this.#forward(piece.events(), shown);
      }
      if (piece.done) {
        this.#countLate(pieces, pieces.indexOf(piece) + 1);
        add(shown, piece.bytes);
        return this.#end('complete', shown);
      }
      this.#meter.count(piece);
      if (piece.bytes.length > 0 && (!piece.usageOnly || this.#includeUsage)) add(shown, piece.bytes);
    }
    return this.#send(shown);
  }

  get #includeUsage(): boolean {
    return this.#streamed.exchange.reservation.grant.chat.includeUsage;
  }

  #send(pieces: ReadonlyArray<Uint8Array>): boolean {
    if (pieces.length === 0) return false;
    this.#hasSpoken = true;
    this.#hasRoom = this.#output?.write(pieces) ?? true;
    return true;
  }

  #end(how: ReplyEnd, last: ReadonlyArray<Uint8Array> = NO_BYTES): true {
    void this.#finish(how, last);
    return true;
  }

  /** Ends the reply, once: the upstream is let go, the charge made durable, then the last bytes are sent. */
  #finish(how: ReplyEnd, last: ReadonlyArray<Uint8Array> = NO_BYTES): Promise<void> {
    this.#ending ??= this.#close(how, last).catch((error: unknown) => this.#fail(error));
    return this.#ending;
  }

  /** For a reason of ours: what is known of its cost is charged, unless that has been done. */
  async #fail(error: unknown): Promise<void> {
    const { line, exchange } = this.#streamed;
    const { requestId } = line.names;
    this.#deps.log.error('a stream failed for a reason of ours', { requestId, why: reasonOf(error) });
    this.#stop();
    await this.#deps.ledger.settle(exchange.reservation.hold, this.#meter.settlement());
    throw error;
  }

  async #close(how: ReplyEnd, last: ReadonlyArray<Uint8Array>): Promise<void> {
    const { exchange, line } = this.#streamed;
    const { reservation, deadline } = exchange;
    const meter = this.#meter;
    if (how !== 'complete') this.#stop();
    else if (!meter.counted) await this.#drain();
    else if (exchange.hasEnded?.() !== true) this.#background(this.#drain());
    const settlement = meter.settlement();
    const booked = await this.#deps.book(reservation, settlement, line);
    deadline.close();
    exchange.over(how);
    line.answered(200, booked ? how : 'broken');
    if (!booked) this.#output?.end([errorWords(UNBOOKED)]);
    else if (how === 'cut') this.#output?.end([...last, cutWords(meter, settlement.tokens, this.#includeUsage)]);
    else this.#output?.end(how === 'complete' ? last : [...last, ...endWords(how)]);
  }

  /** The client has left: the upstream is stopped at once, unless all it still owes is its count. */
  async #leave(): Promise<void> {
    this.#output = undefined;
    if (this.#ending !== undefined || !this.#meter.finished || this.#meter.counted) return this.#finish('left');
    const cancel = this.#deps.timer(LINGER, () => void this.#finish('left'));
    while (this.#ending === undefined) await this.#pump();
    cancel();
    await this.#ending;
  }

  #stop(): void {
    const { deadline, rest } = this.#streamed.exchange;
    deadline.abort();
    // Its failing to end is no news: it has just been aborted.
    Promise.resolve(rest.return?.()).catch(() => {});
  }

  /** The client has seen the end; the count may stand behind it. */
  #countLate(pieces: ReadonlyArray<Piece>, from = 0): void {
    for (let at = from; at < pieces.length; at += 1) {
      const usage = pieces[at]?.usage;
      if (usage !== undefined) this.#meter.count({ ...NOTHING, usage });
    }
  }

  async #drain(): Promise<void> {
    const { reader, rest } = this.#streamed.exchange;
    const cancel = this.#deps.timer(LINGER, () => this.#stop());
    try {
      for (let next = await rest.next(); !next.done; next = await rest.next()) this.#countLate(reader.push(next.value));
      this.#countLate(reader.end());
    } catch {
      // The reply is complete without what came after it.
    } finally {
      cancel();
    }
  }
}

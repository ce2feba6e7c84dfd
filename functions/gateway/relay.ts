// How does a stream reach the client? Piece by piece as it came, counted on the way, settled before its last byte.
import type { OpenReply, ReplyStream } from '#core/ports/reply.ts';
import { reasonOf } from '#core/reason.ts';
import { type Book, UNBOOKED } from './book.ts';
import type { GatewayDeps, Visit } from './deps.ts';
import type { StreamExchange } from './exchange.ts';
import { cutWords, endWords, errorWords } from './last-words.ts';
import { concat } from './members.ts';
import { createMeter } from './meter.ts';
import type { Line, ReplyEnd } from './record.ts';
import { NOTHING, type Piece } from './wire/dialect.ts';

/** An answer that is streamed, and the headers that it begins with. */
export interface Streamed {
  readonly exchange: StreamExchange;
  readonly line: Line;
  readonly headers: Readonly<Record<string, string>>;
}

export type Relay = (streamed: Streamed, visit: Visit) => Response;

/** What the client hears. */
interface Output {
  /** False: it should not get more until it has room. */
  write(bytes: Uint8Array): boolean;
  end(bytes: Uint8Array): void;
}

/** An upstream that has said all is heard for so long: for its count, and so that its connection can be used again. */
const LINGER = 1_000;
/** The upstream has no more to say. */
const ENDED: ReadonlyArray<Piece> = [];

export function createRelay({ ledger, timer, log }: Pick<GatewayDeps, 'ledger' | 'timer' | 'log'>, book: Book): Relay {
  return function relay({ exchange, line, headers }, { background, openReply }) {
    const { reservation, target, reader, rest, deadline } = exchange;
    const { includeUsage } = reservation.grant.chat;
    const meter = createMeter(reservation, target);
    let moving: Promise<void> | undefined;
    let ending: Promise<void> | undefined;
    /** Undefined before the stream has started, and after the client has left. */
    let output: Output | undefined;
    let hasRoom = true;
    let hasSpoken = false;

    ledger.progress(reservation.hold, () => meter.settlement().cost);
    return openReply === undefined ? pulled() : pushed(openReply);

    /** Through a web stream, which asks for more when it has room. */
    function pulled(): Response {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          begin(toOutput(controller));
          showFirst();
        },
        pull: () => pump(),
        cancel: () => background(leave()),
      });
      return new Response(body, { headers });
    }

    /** To a connection that is written to, and says when it has no room. */
    function pushed(open: OpenReply): Response {
      try {
        const { stream, response } = open(200, headers);
        begin(stream);
        background(push(stream));
        return response;
      } catch (error) {
        // A header that cannot be sent, say: nobody will read on, and the hold must not wait for that.
        background(finish('broken'));
        throw error;
      }
    }

    async function push(stream: ReplyStream): Promise<void> {
      try {
        showFirst();
        // What the upstream has said so far shows nothing, and nobody knows when it goes on.
        if (!hasSpoken && ending === undefined) stream.flush();
        while (ending === undefined) {
          if (!hasRoom) await stream.drained();
          hasRoom = true;
          await pump();
        }
        await ending;
      } catch (error) {
        stream.destroy();
        log.error('a stream failed for a reason of ours', { requestId: line.names.requestId, why: reasonOf(error) });
      }
    }

    function begin(to: Output): void {
      output = to;
      deadline.onEnd((why) => background(why === 'left' ? leave() : finish('timeout')));
    }

    /** Unless the exchange had ended before anybody listened. */
    function showFirst(): void {
      if (ending === undefined) forward(exchange.first);
    }

    /** Moves pieces until the client has got something, or the reply has ended. One at a time, whoever asks. */
    function pump(): Promise<void> {
      moving ??= move();
      return moving;
    }

    async function move(): Promise<void> {
      for (let moved = false; !moved && ending === undefined; ) {
        let pieces: ReadonlyArray<Piece>;
        try {
          const chunk = await rest.next();
          pieces = chunk.done ? reader.end() : reader.push(chunk.value);
          if (chunk.done && pieces.length === 0) pieces = ENDED;
        } catch {
          pieces = ENDED;
        }
        if (ending === undefined) moved = pieces === ENDED ? end(whole()) : forward(pieces);
      }
      if (ending !== undefined) await ending;
      moving = undefined;
    }

    /** An end without `[DONE]` is a whole reply only when its content had ended. */
    function whole(): 'complete' | 'broken' {
      return meter.finished ? 'complete' : 'broken';
    }

    function forward(pieces: ReadonlyArray<Piece>, shown: Uint8Array[] = []): boolean {
      for (const piece of pieces) {
        // The provider's own words about its failure stay with us: they may name its account.
        if (piece.error !== undefined) return end('broken', shown);
        if (meter.exceeds(piece))
          return piece.events === undefined ? end('cut', shown) : forward(piece.events(), shown);
        if (piece.done) {
          countLate(pieces.slice(pieces.indexOf(piece) + 1));
          add(shown, piece.bytes);
          return end('complete', shown);
        }
        meter.count(piece);
        if (piece.bytes.length > 0 && (!piece.usageOnly || includeUsage)) add(shown, piece.bytes);
      }
      return send(shown);
    }

    function send(bytes: ReadonlyArray<Uint8Array>): boolean {
      if (bytes.length === 0) return false;
      hasSpoken = true;
      hasRoom = output?.write(concat(bytes)) ?? true;
      return true;
    }

    function end(how: ReplyEnd, last: ReadonlyArray<Uint8Array> = []): true {
      void finish(how, last);
      return true;
    }

    /** Ends the reply, once: the upstream is let go, the charge made durable, then the last bytes are sent. */
    function finish(how: ReplyEnd, last: ReadonlyArray<Uint8Array> = []): Promise<void> {
      ending ??= close(how, last);
      return ending;
    }

    async function close(how: ReplyEnd, last: ReadonlyArray<Uint8Array>): Promise<void> {
      if (how !== 'complete') stop();
      else if (meter.counted) background(drain());
      else await drain();
      const settlement = meter.settlement();
      const booked = await book(reservation, settlement, line);
      deadline.close();
      exchange.over(how);
      line.answered(200, booked ? how : 'broken');
      if (!booked) output?.end(errorWords(UNBOOKED));
      else if (how === 'cut') output?.end(concat([...last, cutWords(meter, settlement.tokens, includeUsage)]));
      else output?.end(concat(how === 'complete' ? last : [...last, ...endWords(how)]));
    }

    /** The client has left: the upstream is stopped at once, unless all it still owes is its count. */
    async function leave(): Promise<void> {
      output = undefined;
      if (ending !== undefined || !meter.finished || meter.counted) return finish('left');
      const cancel = timer(LINGER, () => void finish('left'));
      while (ending === undefined) await pump();
      cancel();
      await ending;
    }

    function stop(): void {
      deadline.abort();
      // Its failing to end is no news: it has just been aborted.
      Promise.resolve(rest.return?.()).catch(() => {});
    }

    /** The client has seen the end; the count may stand behind it. */
    function countLate(pieces: ReadonlyArray<Piece>): void {
      for (const { usage } of pieces) if (usage !== undefined) meter.count({ ...NOTHING, usage });
    }

    async function drain(): Promise<void> {
      const cancel = timer(LINGER, stop);
      try {
        for (let next = await rest.next(); !next.done; next = await rest.next()) countLate(reader.push(next.value));
        countLate(reader.end());
      } catch {
        // The reply is complete without what came after it.
      } finally {
        cancel();
      }
    }
  };
}

/** What stood side by side in a packet is shown as it came. */
function add(shown: Uint8Array[], bytes: Uint8Array): void {
  const last = shown.at(-1);
  const isNext = last?.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset;
  if (last === undefined || !isNext) shown.push(bytes);
  else shown[shown.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + bytes.length);
}

function toOutput(controller: ReadableStreamDefaultController<Uint8Array>): Output {
  const write = (bytes: Uint8Array) => {
    if (bytes.length > 0) controller.enqueue(bytes);
    // It asks when it has.
    return true;
  };
  return {
    write,
    end: (bytes) => {
      write(bytes);
      controller.close();
    },
  };
}

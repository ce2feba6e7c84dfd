// How does a stream reach the client? Piece by piece as it came, counted on the way, settled before its last byte.
import type { Failure } from '#core/failure.ts';
import { type Book, UNBOOKED } from './book.ts';
import type { Background, GatewayDeps } from './deps.ts';
import type { StreamExchange } from './exchange.ts';
import { cutWords, errorWords } from './last-words.ts';
import { concat } from './members.ts';
import { createMeter } from './meter.ts';
import type { Line, ReplyEnd } from './record.ts';
import type { Piece } from './wire/dialect.ts';

export type Relay = (exchange: StreamExchange, line: Line, background: Background) => ReadableStream<Uint8Array>;

/** An upstream that has said all is heard for so long: for its count, and so that its connection can be used again. */
const LINGER = 1_000;

export function createRelay({ ledger, timer }: Pick<GatewayDeps, 'ledger' | 'timer'>, book: Book): Relay {
  return function relay(exchange, line, background) {
    const { reservation, target, reader, rest, deadline } = exchange;
    const { includeUsage } = reservation.grant.chat;
    const meter = createMeter(reservation, target);
    let waiting: ReadonlyArray<Piece> = exchange.first;
    let ending: Promise<void> | undefined;
    /** Undefined before the stream has started, and after the client has left. */
    let output: ReadableStreamDefaultController<Uint8Array> | undefined;

    ledger.progress(reservation.hold, () => meter.settlement().cost);
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        output = controller;
        deadline.onEnd((why) => background(why === 'left' ? leave() : finish('timeout')));
      },
      pull: () => pump(),
      cancel: () => background(leave()),
    });

    /** Moves pieces until the client has got something, or the reply has ended. */
    async function pump(): Promise<void> {
      let moved = false;
      while (!moved && ending === undefined) {
        const pieces = waiting.length > 0 ? waiting : await read();
        waiting = [];
        if (ending === undefined) moved = typeof pieces === 'string' ? end(pieces) : forward(pieces);
      }
      await ending;
    }

    async function read(): Promise<ReadonlyArray<Piece> | 'complete' | 'broken'> {
      try {
        const chunk = await rest.next();
        if (!chunk.done) return reader.push(chunk.value);
        const left = reader.end();
        return left.length > 0 ? left : whole();
      } catch {
        return whole();
      }
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
        if (piece.done) return end('complete', [...shown, piece.bytes]);
        meter.count(piece);
        if (piece.bytes.length > 0 && (!piece.usageOnly || includeUsage)) shown.push(piece.bytes);
      }
      return send(shown);
    }

    function send(bytes: ReadonlyArray<Uint8Array>): boolean {
      if (bytes.length > 0) output?.enqueue(concat(bytes));
      return bytes.length > 0;
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
      if (how === 'complete') background(drain());
      else stop();
      const settlement = meter.settlement();
      const booked = await book(reservation, settlement, line);
      deadline.close();
      exchange.over(how);
      line.answered(200, booked ? how : 'broken');
      if (!booked) send([errorWords(UNBOOKED)]);
      else if (how === 'cut') send([...last, cutWords(meter, settlement.tokens, includeUsage)]);
      else send([...last, ...ERRORS[how].map(errorWords)]);
      output?.close();
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

    async function drain(): Promise<void> {
      const cancel = timer(LINGER, stop);
      try {
        while (!(await rest.next()).done);
      } catch {
        // The reply is complete without what came after it.
      } finally {
        cancel();
      }
    }
  };
}

/** What a reply that ended so is told last. */
const ERRORS: Readonly<Record<Exclude<ReplyEnd, 'cut'>, ReadonlyArray<Failure>>> = {
  complete: [],
  left: [],
  broken: [{ code: 'upstream_error' }],
  timeout: [{ code: 'upstream_timeout' }],
};

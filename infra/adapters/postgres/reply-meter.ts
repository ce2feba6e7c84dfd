// A meter of the data that a database sends over one connection, before the client library reads them.
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { AnswerRefused, jsonBytes } from '../backends/reply-memory.ts';
import { CHECK_ADVICE, createFrame } from './reply-frame.ts';

const MIB = 1024 * 1024;
/** The maximum bytes before the connection is ready: parameters and the authentication. */
const MAX_HANDSHAKE = 64 * 1024;
/** The maximum bytes of the reply to an ordinary statement. */
export const MAX_ANSWER = 16 * MIB;
/** The maximum bytes of the reply to a statement that reads very many rows. */
export const MAX_LARGE_ANSWER = 64 * MIB;

/** The memory of a row in addition to its bytes, of which there may be only seven. */
const ROW = 64;

export type ReplyMeter = ReturnType<typeof createReplyMeter>;

/** The memory of a reply in bytes. `now`: while rows arrive. `kept`: of the rows alone. */
interface Weight {
  readonly now: number;
  readonly kept: number;
}

/** `fail` ends the connection with this error. */
export function createReplyMeter(fail: (error: Error) => void) {
  const frame = createFrame();
  let max = MAX_HANDSHAKE;
  let [bytes, rows, json, wideCharacters] = [0, 0, 0, 0];
  let listener: ((weight: Weight) => void) | undefined;
  /** Estimates of V8's memory. A text with wide characters has two bytes for each character. */
  const weight = (): Weight => ({
    now: 2 * bytes + ROW * rows + json,
    kept: bytes + wideCharacters + 100 * rows + json,
  });
  const measure = (): void => {
    if (bytes + ROW * rows > max) throw new AnswerRefused(`answers with more than ${max / 1024} KiB${CHECK_ADVICE}`);
    listener?.(weight());
  };
  return {
    /**
     * Begins a statement, whose reply may have `maxBytes`. `onWeight` gets the memory of the reply, and throws if it is
     * too much.
     */
    begin(maxBytes: number, onWeight?: (weight: Weight) => void): void {
      [max, bytes, rows, json, wideCharacters, listener] = [maxBytes, 0, 0, 0, 0, onWeight];
      frame.beginStatement();
    },
    /**
     * Ends a statement; returns its weight. Until the next statement the server may send a notice, but nothing large.
     */
    end(): Weight {
      const whole = weight();
      [max, bytes, rows, json, wideCharacters, listener] = [MAX_HANDSHAKE, 0, 0, 0, 0, undefined];
      return whole;
    },
    /** Counts any text, and returns it. */
    text(text: string): string {
      if (/[\u0100-\uffff]/.test(text)) wideCharacters += text.length;
      return text;
    },
    /** Counts a JSON text, or a list of texts, before it is parsed. */
    json(text: string, maxText = Number.POSITIVE_INFINITY): void {
      try {
        if (text.length > maxText)
          throw new AnswerRefused(`answers with a list of more than ${maxText / 1024} KiB${CHECK_ADVICE}`);
        json += jsonBytes(this.text(text));
        measure();
      } catch (error) {
        fail(error as Error);
        throw error;
      }
    },
    /** Returns the chunk in pieces (reply-frame.ts). Throws AnswerRefused, or the error of `onWeight`. */
    read(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
      const framed = frame.read(chunk);
      bytes += chunk.length;
      rows += framed.rows;
      measure();
      return framed.pieces;
    },
  };
}

/**
 * The stream that the client library gets. If the library throws an error about the data, which nothing would catch,
 * the connection ends too.
 */
export function meterStream(stream: Duplex, meter: ReplyMeter): EventEmitter {
  const output = new EventEmitter();
  stream.on('data', (chunk: Buffer) => {
    if (stream.destroyed) return;
    pauseStream(stream);
    try {
      for (const piece of meter.read(chunk)) if (!stream.destroyed) output.emit('data', piece);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  stream.on('end', () => output.emit('end'));
  return output;
}

/**
 * Pauses the connection after each chunk until the next turn of the event loop: else it would deliver 32 chunks before
 * other connections get one. The stream of a Worker cannot be paused.
 */
function pauseStream(stream: Duplex): void {
  if (typeof stream.pause !== 'function') return;
  stream.pause();
  setImmediate(() => stream.resume());
}

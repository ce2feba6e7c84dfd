// The size of what a database sends over one connection, measured before the client library reads it.
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { AnswerRefused, jsonBytes } from '../backends/reply-memory.ts';
import { CHECK, createFrame } from './reply-frame.ts';

const MIB = 1024 * 1024;
/** Before the connection is ready: parameters and the password's exchange. */
const MAX_HANDSHAKE = 64 * 1024;
/** A statement whose answer is not known to be large. */
export const MAX_ANSWER = 16 * MIB;
/** A statement that reads very many rows. */
export const MAX_LARGE_ANSWER = 64 * MIB;

/** Bytes that a row weighs beside its own, which may be seven. */
const ROW = 64;

export type ReplyMeter = ReturnType<typeof createReplyMeter>;

/** Bytes of memory: `now` while rows arrive, `kept` of the rows themselves. */
interface Weight {
  readonly now: number;
  readonly kept: number;
}

/** `fail` ends the connection with this error. */
export function createReplyMeter(fail: (error: Error) => void) {
  const frame = createFrame();
  let max = MAX_HANDSHAKE;
  let [bytes, rows, json, wide] = [0, 0, 0, 0];
  let listener: ((weight: Weight) => void) | undefined;
  /** The values in a byte and in a row without columns, as V8 keeps them: a wide text has two bytes a character. */
  const weight = (): Weight => ({ now: 2 * bytes + ROW * rows + json, kept: bytes + wide + 100 * rows + json });
  const measure = (): void => {
    if (bytes + ROW * rows > max) throw new AnswerRefused(`answers with more than ${max / 1024} KiB${CHECK}`);
    listener?.(weight());
  };
  return {
    /**
     * A statement begins: its answer may have so many bytes. `tell` hears what it takes, and throws where that is too
     * much.
     */
    begin(maxBytes: number, tell?: (weight: Weight) => void): void {
      [max, bytes, rows, json, wide, listener] = [maxBytes, 0, 0, 0, 0, tell];
      frame.ask();
    },
    /** The statement has ended: the server may send a notice, and nothing large. */
    end(): Weight {
      const whole = weight();
      [max, bytes, rows, json, wide, listener] = [MAX_HANDSHAKE, 0, 0, 0, 0, undefined];
      return whole;
    },
    /** Any text, which it answers. */
    text(text: string): string {
      if (/[\u0100-\uffff]/.test(text)) wide += text.length;
      return text;
    },
    /** A JSON text, or a list of texts, that is about to be parsed. */
    json(text: string, maxText = Number.POSITIVE_INFINITY): void {
      try {
        if (text.length > maxText)
          throw new AnswerRefused(`answers with a list of more than ${maxText / 1024} KiB${CHECK}`);
        json += jsonBytes(this.text(text));
        measure();
      } catch (error) {
        fail(error as Error);
        throw error;
      }
    },
    /** Answers the chunk in pieces (reply-frame.ts). Throws AnswerRefused, or what `tell` throws. */
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
 * The stream as the client library hears it. An error of the library about what came, thrown where nobody would catch
 * it, ends the connection as well.
 */
export function metered(stream: Duplex, meter: ReplyMeter): EventEmitter {
  const heard = new EventEmitter();
  stream.on('data', (chunk: Buffer) => {
    if (stream.destroyed) return;
    giveWay(stream);
    try {
      for (const piece of meter.read(chunk)) if (!stream.destroyed) heard.emit('data', piece);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  stream.on('end', () => heard.emit('end'));
  return heard;
}

/**
 * Lets the connection have one chunk in a turn of the event loop: 31 more would come before other connections have
 * theirs. The stream of a Worker cannot wait.
 */
function giveWay(stream: Duplex): void {
  if (typeof stream.pause !== 'function') return;
  stream.pause();
  setImmediate(() => stream.resume());
}

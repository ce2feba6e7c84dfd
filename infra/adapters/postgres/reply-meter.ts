// The size of what a database sends over one connection, measured before the client library reads it.
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { AnswerRefused, jsonBytes } from '../backends/reply-memory.ts';

const MIB = 1024 * 1024;
/** Before the connection is ready: parameters and the password's exchange. */
export const MAX_HANDSHAKE = 64 * 1024;
/** A statement whose answer is not known to be large. */
export const MAX_ANSWER = 16 * MIB;
/** A statement that reads very many rows. */
export const MAX_LARGE_ANSWER = 64 * MIB;
/** One message: a row, an error. The largest of ours is a row with a policy, whose object fits etcd's 1.5 MiB. */
const MAX_MESSAGE = 8 * MIB;
/** Columns of a row: one with ever so many would take far more memory than bytes. */
const MAX_COLUMNS = 64;

const CHECK = ': check that the Secret names the right server';

const DATA_ROW = 0x44;
const ROW_DESCRIPTION = 0x54;
const ERROR = 0x45;
const NOTICE = 0x4e;
/** Type and length. */
const HEAD = 5;
/** The head, and the count of columns. */
const HEAD_OF_ROW = 7;

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
  let [bytes, rows, json] = [0, 0, 0];
  let told: ((weight: Weight) => void) | undefined;
  /** The values in a byte and in a row without columns, as V8 keeps them. */
  const weight = (): Weight => ({ now: 2 * bytes + 64 * rows + json, kept: bytes / 2 + 100 * rows + json });
  const measure = (): void => {
    if (bytes > max) throw new AnswerRefused(`answers with more than ${max / 1024} KiB${CHECK}`);
    told?.(weight());
  };
  return {
    /** A statement begins: its answer may have so many bytes. `tell` hears what it takes, and throws where that is too much. */
    begin(maxBytes: number, tell?: (weight: Weight) => void): void {
      [max, bytes, rows, json, told] = [maxBytes, 0, 0, 0, tell];
    },
    /** The statement has ended: the server may send a notice, and nothing large. */
    end(): Weight {
      const whole = weight();
      [max, bytes, rows, json, told] = [MAX_HANDSHAKE, 0, 0, 0, undefined];
      return whole;
    },
    /** A JSON text that is about to be parsed. */
    json(text: string): void {
      json += jsonBytes(text);
      try {
        measure();
      } catch (error) {
        fail(error as Error);
        throw error;
      }
    },
    /** Throws AnswerRefused, or what `tell` throws. */
    read(chunk: Uint8Array): void {
      bytes += chunk.length;
      rows += frame(chunk);
      measure();
    },
  };
}

/** Follows the messages of a connection; answers how many rows begin in a chunk. */
function createFrame(): (chunk: Uint8Array) => number {
  const head = new DataView(new ArrayBuffer(HEAD_OF_ROW));
  const fields = createFields();
  let filled = 0;
  let rest = 0;
  const isHead = () => filled === (hasColumns(head) ? HEAD_OF_ROW : HEAD);
  return (chunk) => {
    let rows = 0;
    for (let at = 0; at < chunk.length; ) {
      if (rest > 0) {
        const end = Math.min(at + rest, chunk.length);
        rest -= end - at;
        if (hasFields(head)) fields.read(chunk.subarray(at, end), rest === 0);
        at = end;
        continue;
      }
      head.setUint8(filled, chunk[at] ?? 0);
      at += 1;
      filled += 1;
      if (filled < HEAD || !isHead()) continue;
      rest = restOf(head) - (filled - HEAD);
      if (rest === 0 && hasFields(head)) throw notPostgres();
      if (head.getUint8(0) === DATA_ROW) rows += 1;
      filled = 0;
    }
    return rows;
  };
}

/** Fields of an error or a notice: a type and a text each, then a zero. The client library looks for that zero for ever, beyond the message too. */
function createFields() {
  let isText = false;
  let hasEnded = false;
  return {
    read(bytes: Uint8Array, isLast: boolean): void {
      for (const byte of bytes) {
        if (hasEnded) throw notPostgres();
        hasEnded = !isText && byte === 0;
        isText = byte !== 0;
      }
      if (!isLast) return;
      if (!hasEnded) throw notPostgres();
      [isText, hasEnded] = [false, false];
    },
  };
}

const notPostgres = () => new AnswerRefused(`sends what is no message of PostgreSQL${CHECK}`);

const hasFields = (head: DataView): boolean => [ERROR, NOTICE].includes(head.getUint8(0));
const hasColumns = (head: DataView): boolean => [DATA_ROW, ROW_DESCRIPTION].includes(head.getUint8(0));

/** Bytes of the message behind its head. */
function restOf(head: DataView): number {
  const length = head.getInt32(1) - 4;
  const least = hasColumns(head) ? HEAD_OF_ROW - HEAD : 0;
  if (length < least) throw notPostgres();
  if (length > MAX_MESSAGE) throw new AnswerRefused(`sends a message of more than ${MAX_MESSAGE / 1024} KiB${CHECK}`);
  if (hasColumns(head) && (head.getInt16(5) > MAX_COLUMNS || head.getInt16(5) < 0))
    throw new AnswerRefused(`sends rows of more than ${MAX_COLUMNS} columns${CHECK}`);
  return length;
}

/**
 * The stream as the client library hears it. An error of the library about what came, thrown where nobody would catch it, ends the
 * connection as well.
 */
export function metered(stream: Duplex, meter: ReplyMeter): EventEmitter {
  const heard = new EventEmitter();
  stream.on('data', (chunk: Buffer) => {
    if (stream.destroyed) return;
    try {
      meter.read(chunk);
      heard.emit('data', chunk);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  stream.on('end', () => heard.emit('end'));
  return heard;
}

// Where does one event of an event stream end and the next begin, in bytes and whatever the packets? (WHATWG HTML, 9.2.)
import { concat } from '../members.ts';

/** Events are the very bytes they came in, their blank lines included. */
export interface SseSplitter {
  /** The event that ends first in these bytes from `from` on, with what was left over before; undefined: all were taken, and none ended. */
  next(bytes: Uint8Array, from: number): Uint8Array | undefined;
  /** Where the event that `next` answered last ended in its bytes. */
  readonly at: number;
  /** Nothing is left over: the next byte begins an event. */
  readonly isBetween: boolean;
  /** All events that end in these bytes. */
  push(bytes: Uint8Array): ReadonlyArray<Uint8Array>;
  /** What the end cut short, if anything. Lenient: providers forget the last blank line. */
  end(): ReadonlyArray<Uint8Array>;
}

/** An upstream that sends no line end for so long is not sending events. */
const LONGEST_EVENT = 32 * 1024 * 1024;
const LF = 0x0a;
const CR = 0x0d;

const encoder = new TextEncoder();

/** One event in bytes. */
export function toEvent(data: string): Uint8Array {
  return encoder.encode(`data: ${data}\n\n`);
}

/** A line that clients pass over: it only shows that somebody is there. */
export function toComment(text: string): Uint8Array {
  return encoder.encode(`: ${text}\n\n`);
}

export function createSplitter(): SseSplitter {
  return new Splitter();
}

/** A class, because one is made for each stream: methods are shared. */
class Splitter implements SseSplitter {
  at = 0;
  #pending: Uint8Array[] = [];
  #pendingLength = 0;
  /** Whether the line that is being read has no byte yet, and the event no line. */
  #lineEmpty = true;
  #eventEmpty = true;
  #afterCr = false;
  /** Lines of this stream end in two bytes, so the one that ends an event is waited for. */
  #pairs = false;
  #awaitingLf = false;

  get isBetween(): boolean {
    return this.#pendingLength === 0 && this.#lineEmpty && this.#eventEmpty && !this.#afterCr && !this.#awaitingLf;
  }

  push(bytes: Uint8Array): ReadonlyArray<Uint8Array> {
    const events: Uint8Array[] = [];
    for (let event = this.next(bytes, 0); event !== undefined; event = this.next(bytes, this.at)) events.push(event);
    return events;
  }

  end(): ReadonlyArray<Uint8Array> {
    return this.#pendingLength === 0 ? [] : [this.#take(new Uint8Array(0))];
  }

  next(bytes: Uint8Array, from: number): Uint8Array | undefined {
    for (let here = from; here < bytes.length; here += 1) {
      const byte = bytes[here];
      if (this.#awaitingLf) return this.#endAt(bytes, from, byte === LF ? here + 1 : here);
      if (byte !== LF && byte !== CR) {
        this.#afterCr = false;
        this.#lineEmpty = false;
        this.#eventEmpty = false;
        here = lineEnd(bytes, here) - 1;
      } else if (byte === LF && this.#afterCr) {
        this.#afterCr = false;
        this.#pairs = true;
      } else {
        this.#afterCr = byte === CR;
        if (!this.#lineEmpty) this.#lineEmpty = true;
        else if (!this.#eventEmpty && this.#afterCr && this.#pairs) this.#awaitingLf = true;
        else if (!this.#eventEmpty) return this.#endAt(bytes, from, here + 1);
      }
    }
    this.#keep(bytes.subarray(from));
    return undefined;
  }

  #endAt(bytes: Uint8Array, from: number, end: number): Uint8Array {
    this.at = end;
    return this.#take(bytes.subarray(from, end));
  }

  #take(rest: Uint8Array): Uint8Array {
    const bytes = this.#pending.length === 0 ? rest : concat([...this.#pending, rest]);
    this.#pending = [];
    this.#pendingLength = 0;
    this.#eventEmpty = true;
    this.#lineEmpty = true;
    if (this.#awaitingLf) this.#afterCr = false;
    this.#awaitingLf = false;
    return bytes;
  }

  #keep(rest: Uint8Array): void {
    if (rest.length === 0) return;
    this.#pending.push(rest);
    this.#pendingLength += rest.length;
    if (this.#pendingLength > LONGEST_EVENT) {
      throw new Error(`an event of the upstream is larger than ${LONGEST_EVENT} bytes`);
    }
  }
}

function lineEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at += 1;
  return at;
}

const decoder = new TextDecoder();

/** The `data` lines of an event joined; undefined for a comment or an event without data. */
export function dataOf(event: Uint8Array): string | undefined {
  const text = decoder.decode(event);
  // As nearly all are: one line of data, or the event's name and one.
  const start = text.startsWith('event:') ? text.indexOf('\n') + 1 : 0;
  if (text.startsWith('data: ', start) && text.indexOf('\n', start) === text.length - 2 && !text.includes('\r')) {
    return text.slice(start + 6, -2);
  }
  const lines = text
    .split(/\r\n|\r|\n/)
    .filter((line) => line === 'data' || line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
  return lines.length === 0 ? undefined : lines.join('\n');
}

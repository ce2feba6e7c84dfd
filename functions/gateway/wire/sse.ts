// Events of an event stream, in the very bytes they came in, whatever the packets (WHATWG HTML, 9.2).
import { concat } from './json-splice.ts';

/** Events keep their blank lines. */
export interface SseSplitter {
  /** The events that end in these bytes, the first with what was left over before. */
  push(bytes: Uint8Array): ReadonlyArray<Uint8Array>;
  /** The event that the end cut short, if any. Lenient: providers forget the last blank line. */
  end(): ReadonlyArray<Uint8Array>;
  /** Nothing is left over: the next byte begins an event. */
  readonly isBetween: boolean;
}

/** An upstream that sends no line end for so long is not sending events. */
const MAX_EVENT = 32 * 1024 * 1024;
const LF = 0x0a;
const CR = 0x0d;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One event in bytes. */
export function toEvent(data: string): Uint8Array {
  return encoder.encode(`data: ${data}\n\n`);
}

/** A line that clients pass over: it keeps the connection alive. */
export function toComment(text: string): Uint8Array {
  return encoder.encode(`: ${text}\n\n`);
}

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

export function createSplitter(): SseSplitter {
  return new Splitter();
}

/** A class, because one is made for each stream: methods are shared. */
class Splitter implements SseSplitter {
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
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const end = this.#read(bytes, at);
      if (end === undefined) continue;
      events.push(this.#take(bytes.subarray(start, end)));
      start = end;
      at = end - 1;
    }
    this.#keep(bytes.subarray(start));
    return events;
  }

  end(): ReadonlyArray<Uint8Array> {
    return this.#pendingLength === 0 ? [] : [this.#take(new Uint8Array(0))];
  }

  /** The end of the event that this byte ends, if it ends one. */
  #read(bytes: Uint8Array, at: number): number | undefined {
    const byte = bytes[at];
    if (this.#awaitingLf) return byte === LF ? at + 1 : at;
    if (byte !== LF && byte !== CR) {
      this.#afterCr = false;
      this.#lineEmpty = false;
      this.#eventEmpty = false;
    } else if (byte === LF && this.#afterCr) {
      this.#afterCr = false;
      this.#pairs = true;
    } else {
      this.#afterCr = byte === CR;
      if (!this.#lineEmpty) this.#lineEmpty = true;
      else if (!this.#eventEmpty && this.#afterCr && this.#pairs) this.#awaitingLf = true;
      else if (!this.#eventEmpty) return at + 1;
    }
    return undefined;
  }

  #take(rest: Uint8Array): Uint8Array {
    const event = this.#pending.length === 0 ? rest : concat([...this.#pending, rest]);
    this.#pending = [];
    this.#pendingLength = 0;
    this.#eventEmpty = true;
    this.#lineEmpty = true;
    if (this.#awaitingLf) this.#afterCr = false;
    this.#awaitingLf = false;
    return event;
  }

  #keep(rest: Uint8Array): void {
    if (rest.length === 0) return;
    this.#pending.push(rest);
    this.#pendingLength += rest.length;
    if (this.#pendingLength > MAX_EVENT) throw new Error(`an event of the upstream is larger than ${MAX_EVENT} bytes`);
  }
}

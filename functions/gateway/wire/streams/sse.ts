// Events of an event stream in their original bytes, whatever the packets (WHATWG HTML, 9.2).
import { concat, Pieces, toUtf8 } from '#core/json/bytes.ts';
import { parseJson } from '#core/json/json.ts';
import { UpstreamBroke } from '#core/ports/serving.ts';

/** The maximum size of an event: an upstream that sends more bytes without its end is not sending events. */
const MAX_EVENT = 32 * 1024 * 1024;
/**
 * The end of a line with content, and of an empty one behind it. A carriage return at the end of a packet may be half
 * of a line end, so the match waits for the next byte, except in a stream whose lines end in carriage returns only.
 */
const EVENT_END = /(?<=[^\r\n])(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|(?<=\r)\r|\r(?!$))/g;
/** No end of an event, with what must stand before it, is longer by more than one character. */
const MAX_TAIL = 4;

/** A byte order mark stays, so that an event reads the same wherever the packet that it came in began. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** A character for each byte: the engine searches text natively, and offsets in it are offsets in the bytes. */
export const latin1 = new TextDecoder('latin1');

/** One event in bytes. */
export function toEvent(data: string): Uint8Array {
  return toUtf8(`data: ${data}\n\n`);
}

/** One event with its name, which is in its data as well. */
export function toNamedEvent(type: string, more: object): Uint8Array {
  return toUtf8(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
}

/** A comment: clients ignore the line, and the connection stays alive. */
export function toComment(text: string): Uint8Array {
  return toUtf8(`: ${text}\n\n`);
}

/** The `data` lines of an event joined; undefined for a comment or an event without data. */
export function dataOf(event: Uint8Array): string | undefined {
  const text = decoder.decode(event);
  // Nearly all events are one line of data, or the event's name and one.
  const start = text.startsWith('event:') ? text.indexOf('\n') + 1 : 0;
  if (text.startsWith('data: ', start) && text.indexOf('\n', start) === text.length - 2 && !text.includes('\r')) {
    return text.slice(start + 6, -2);
  }
  const lines = text
    .split(/\r\n|\r|\n/)
    .map((line) => line.replace(/^\ufeff/, ''))
    .filter((line) => line === 'data' || line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
  return lines.length === 0 ? undefined : lines.join('\n');
}

/** The `data` of an event parsed; undefined where it has none, or no JSON. */
export function jsonOf(event: Uint8Array): unknown {
  const data = dataOf(event);
  return data === undefined ? undefined : parseJson(data);
}

/** Events keep their blank lines. A class, because one is made for each stream: methods are shared. */
export class SseSplitter {
  readonly #pending = new Pieces();
  /** The last characters of what is pending: the end of an event may come in two packets. */
  #tail = '';

  /** Whether nothing is left over, so that the next byte begins an event. */
  get isBetween(): boolean {
    return this.#pending.length === 0;
  }

  /** The events that end in these bytes, the first with what was left over before. */
  push(bytes: Uint8Array): ReadonlyArray<Uint8Array> {
    const events: Uint8Array[] = [];
    const known = this.#tail.length;
    const text = this.#tail + latin1.decode(bytes);
    let taken = 0;
    for (const { 0: end, index } of text.matchAll(EVENT_END)) {
      const from = Math.max(taken - known, 0);
      taken = index + end.length;
      events.push(this.#take(bytes.subarray(from, taken - known)));
    }
    this.#keep(bytes.subarray(Math.max(taken - known, 0)));
    this.#tail = text.slice(Math.max(taken, text.length - MAX_TAIL));
    return events;
  }

  /** The event that the end of the stream cut short, if any. Lenient: providers forget the last blank line. */
  end(): ReadonlyArray<Uint8Array> {
    return this.#pending.length === 0 ? [] : [this.#take(new Uint8Array(0))];
  }

  #take(rest: Uint8Array): Uint8Array {
    return this.isBetween ? rest : concat([this.#pending.take(), rest]);
  }

  #keep(rest: Uint8Array): void {
    this.#pending.add(rest);
    if (this.#pending.length > MAX_EVENT)
      throw new UpstreamBroke('broken', `an event of the upstream is larger than ${MAX_EVENT} bytes`);
  }
}

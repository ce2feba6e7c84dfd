// Events of an event stream in their original bytes, whatever the packets (WHATWG HTML, 9.2).
import { concat, Pieces, toUtf8 } from '#core/json/bytes.ts';
import { parseJson } from '#core/json/json.ts';
import { isTooCostly, LONG_TEXT } from '#core/json/json-limits.ts';
import { UpstreamError } from '#core/ports/upstream.ts';

/** The maximum bytes of an event: an upstream that sends more without an end does not send events. */
const MAX_EVENT = 32 * 1024 * 1024;
/**
 * The end of a line with content, and of an empty line after it. A carriage return at the end of a packet may be half
 * of a line end: the match waits for the next byte, except in a stream whose lines all end in carriage returns.
 */
const EVENT_END = /(?<=[^\r\n])(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|(?<=\r)\r|\r(?!$))/g;
/** The maximum number of lines of an event: a list of lines takes many times their bytes. */
const MAX_LINES = 10_000;
const BLANK_LINE = toUtf8('\n\n');
/** The maximum characters of an event's end, with the character before it, less one. */
const MAX_TAIL = 4;

/** Keeps a byte order mark: an event must be read alike wherever its packet began. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/**
 * Decodes each byte to one character: the engine searches text natively, and offsets in the text are offsets in the
 * bytes.
 */
export const latin1 = new TextDecoder('latin1');

/** The bytes of an event. */
export function toEvent(data: string): Uint8Array {
  return toUtf8(`data: ${data}\n\n`);
}

/** The bytes of an event with a name, which is also in its data. */
export function toNamedEvent(type: string, more: object): Uint8Array {
  return toUtf8(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
}

/** The bytes of a comment: clients ignore it, and the connection stays open. */
export function toComment(text: string): Uint8Array {
  return toUtf8(`: ${text}\n\n`);
}

/** The `data` lines of an event, joined; undefined: a comment, or an event without data. */
export function dataOf(event: Uint8Array): string | undefined {
  const text = decoder.decode(event);
  // Nearly all events have one line of data, some with a name before it.
  const start = text.startsWith('event:') ? text.indexOf('\n') + 1 : 0;
  if (text.startsWith('data: ', start) && text.indexOf('\n', start) === text.length - 2 && !text.includes('\r')) {
    return text.slice(start + 6, -2);
  }
  const all = text.split(/\r\n|\r|\n/, MAX_LINES + 1);
  if (all.length > MAX_LINES)
    throw new UpstreamError('broken', `an event of the upstream has more than ${MAX_LINES} lines`);
  const lines = all
    .map((line) => line.replace(/^\ufeff/, ''))
    .filter((line) => line === 'data' || line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
  return lines.length === 0 ? undefined : lines.join('\n');
}

/** The parsed `data` of an event; undefined: no data, or no JSON. */
export function jsonOf(event: Uint8Array): unknown {
  const data = dataOf(event);
  return data === undefined ? undefined : parseJson(data);
}

/**
 * Takes memory for this number of bytes of an event whose end has not arrived, in place of the last number. False:
 * there is none.
 */
export type ResizePending = (bytes: number) => boolean;

/** The bytes of an event or a frame whose end has not arrived. Long ones take memory. */
export class PendingBytes {
  readonly #pieces = new Pieces();
  readonly #keep: ResizePending;
  #kept = 0;

  constructor(resize: ResizePending) {
    this.#keep = resize;
  }

  get length(): number {
    return this.#pieces.length;
  }

  add(bytes: Uint8Array): void {
    this.#pieces.add(bytes);
    const { length } = this.#pieces;
    if (length > MAX_EVENT)
      throw new UpstreamError('broken', `an event of the upstream is larger than ${MAX_EVENT} bytes`);
    if (length > LONG_TEXT) this.#resize(2 * length);
  }

  /** Takes all bytes, joined. */
  take(): Uint8Array {
    if (this.#kept > 0) this.#resize(0);
    return this.#pieces.take();
  }

  /** Takes memory for twice the bytes: the pieces stay while they are joined. */
  #resize(bytes: number): void {
    if (!this.#keep(bytes)) throw new UpstreamError('no room', 'no memory for an event of the upstream');
    this.#kept = bytes;
  }
}

/** Splits a stream into events, with their blank lines. A class, because each stream has one: methods are shared. */
export class SseSplitter {
  readonly #pending: PendingBytes;
  /** The last characters of the pending bytes: the end of an event may arrive in two packets. */
  #tail = '';

  constructor(keep: ResizePending = () => true) {
    this.#pending = new PendingBytes(keep);
  }

  /** Whether nothing is pending: the next byte begins an event. */
  get isAtEventStart(): boolean {
    return this.#pending.length === 0;
  }

  /** The events that end in these bytes; the first one with the pending bytes. */
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
    this.#pending.add(bytes.subarray(Math.max(taken - known, 0)));
    this.#tail = text.slice(Math.max(taken, text.length - MAX_TAIL));
    return events;
  }

  /**
   * The last event, if its blank line is missing: providers forget that line. It is added, so that a later event of the
   * gateway is an event of its own.
   */
  end(): ReadonlyArray<Uint8Array> {
    return this.#pending.length === 0 ? [] : [this.#take(BLANK_LINE)];
  }

  #take(rest: Uint8Array): Uint8Array {
    const event = this.isAtEventStart ? rest : concat([this.#pending.take(), rest]);
    if (isTooCostly(event)) throw new UpstreamError('broken', 'an event of the upstream has too many values');
    return event;
  }
}

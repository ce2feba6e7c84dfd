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
  let pending: Uint8Array[] = [];
  let pendingLength = 0;
  /** Whether the line that is being read has no byte yet, and the event no line. */
  let lineEmpty = true;
  let eventEmpty = true;
  let afterCr = false;
  /** Lines of this stream end in two bytes, so the one that ends an event is waited for. */
  let pairs = false;
  let awaitingLf = false;

  let at = 0;

  return {
    next,
    push,
    end: () => (pendingLength === 0 ? [] : [take(new Uint8Array(0))]),
    get at() {
      return at;
    },
    get isBetween() {
      return pendingLength === 0 && lineEmpty && eventEmpty && !afterCr && !awaitingLf;
    },
  };

  function push(bytes: Uint8Array): ReadonlyArray<Uint8Array> {
    const events: Uint8Array[] = [];
    for (let event = next(bytes, 0); event !== undefined; event = next(bytes, at)) events.push(event);
    return events;
  }

  function next(bytes: Uint8Array, from: number): Uint8Array | undefined {
    const endAt = (end: number) => {
      at = end;
      return take(bytes.subarray(from, end));
    };
    for (let here = from; here < bytes.length; here += 1) {
      const byte = bytes[here];
      if (awaitingLf) return endAt(byte === LF ? here + 1 : here);
      if (byte !== LF && byte !== CR) {
        afterCr = false;
        lineEmpty = false;
        eventEmpty = false;
        here = lineEnd(bytes, here) - 1;
      } else if (byte === LF && afterCr) {
        afterCr = false;
        pairs = true;
      } else {
        afterCr = byte === CR;
        if (!lineEmpty) lineEmpty = true;
        else if (!eventEmpty && afterCr && pairs) awaitingLf = true;
        else if (!eventEmpty) return endAt(here + 1);
      }
    }
    keep(bytes.subarray(from));
    return undefined;
  }

  function take(rest: Uint8Array): Uint8Array {
    const bytes = pending.length === 0 ? rest : concat([...pending, rest]);
    pending = [];
    pendingLength = 0;
    eventEmpty = true;
    lineEmpty = true;
    if (awaitingLf) afterCr = false;
    awaitingLf = false;
    return bytes;
  }

  function keep(rest: Uint8Array): void {
    if (rest.length === 0) return;
    pending.push(rest);
    pendingLength += rest.length;
    if (pendingLength > LONGEST_EVENT)
      throw new Error(`an event of the upstream is larger than ${LONGEST_EVENT} bytes`);
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

// Where does one event of an event stream end and the next begin, in bytes and whatever the packets? (WHATWG HTML, 9.2.)
import { concat } from '../members.ts';

/** One event with the very bytes it came in, its blank line included. */
export interface SseEvent {
  readonly bytes: Uint8Array;
  /** The `data` lines joined; undefined for a comment or an event without data. */
  readonly data: string | undefined;
}

export interface SseSplitter {
  push(bytes: Uint8Array): ReadonlyArray<SseEvent>;
  /** What the end cut short, if anything. Lenient: providers forget the last blank line. */
  end(): ReadonlyArray<SseEvent>;
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

  return { push, end };

  function push(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    const events: SseEvent[] = [];
    let start = 0;
    const endAt = (at: number) => {
      events.push(take(bytes.subarray(start, at)));
      start = at;
    };
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (awaitingLf) {
        endAt(byte === LF ? at + 1 : at);
        if (byte === LF) continue;
      }
      if (byte === LF && afterCr) {
        afterCr = false;
        pairs = true;
      } else if (byte !== LF && byte !== CR) {
        afterCr = false;
        lineEmpty = false;
        eventEmpty = false;
      } else {
        afterCr = byte === CR;
        if (!lineEmpty) lineEmpty = true;
        else if (!eventEmpty && afterCr && pairs) awaitingLf = true;
        else if (!eventEmpty) endAt(at + 1);
      }
    }
    keep(bytes.subarray(start));
    return events;
  }

  function end(): ReadonlyArray<SseEvent> {
    return pendingLength === 0 ? [] : [take(new Uint8Array(0))];
  }

  function take(rest: Uint8Array): SseEvent {
    const bytes = pending.length === 0 ? rest : concat([...pending, rest]);
    pending = [];
    pendingLength = 0;
    eventEmpty = true;
    lineEmpty = true;
    if (awaitingLf) afterCr = false;
    awaitingLf = false;
    return { bytes, data: dataOf(bytes) };
  }

  function keep(rest: Uint8Array): void {
    if (rest.length === 0) return;
    pending.push(rest);
    pendingLength += rest.length;
    if (pendingLength > LONGEST_EVENT)
      throw new Error(`an event of the upstream is larger than ${LONGEST_EVENT} bytes`);
  }
}

const decoder = new TextDecoder();

function dataOf(bytes: Uint8Array): string | undefined {
  const lines = decoder
    .decode(bytes)
    .split(/\r\n|\r|\n/)
    .filter((line) => line === 'data' || line.startsWith('data:'))
    .map((line) => line.slice(line.startsWith('data: ') ? 6 : 5));
  return lines.length === 0 ? undefined : lines.join('\n');
}

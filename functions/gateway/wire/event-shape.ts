// Is this event like one that was read before, but for its texts? Then no parser need read it: what it says is known but for how much.
import { bytesIn } from '../measure.ts';
import { membersOf, type ObjectText } from '../members.ts';
import { behind, type Fixed, type Packet, repeats, toFixed } from './same-bytes.ts';

/** An event without the texts that differ from event to event. */
export interface Shape {
  /** The bytes around the texts, quotes included: one more than there are texts. */
  readonly fixed: ReadonlyArray<Fixed>;
  readonly gaps: ReadonlyArray<Gap>;
  /** Which of them is said first; -1: none. */
  readonly firstSaid: number;
  /** Bytes that every event of this shape says. */
  readonly alwaysSaid: number;
  /** Nothing is in it but names, small indices and words of JSON's own: it holds nothing of what one stream said. */
  readonly isBare: boolean;
}

/** What stands between the fixed bytes: a text of the model's, any other text, or a whole number that nobody counts. */
type Gap = 'said' | 'text' | 'number';

/** Events of a known shape that follow each other. */
export interface Run {
  /** Just behind the last one's blank line. */
  readonly end: number;
  /** How many of them say something, and how many bytes. */
  readonly deltas: number;
  readonly bytesSaid: number;
}

interface Found {
  /** Behind a text's first quote, and at its last. */
  readonly start: number;
  readonly end: number;
  readonly gap: Gap;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const SPACE = 0x20;
const LOWER_U = 0x75;
const ZERO = 0x30;
const NINE = 0x39;
const DATA = [...'data:'].map((letter) => letter.charCodeAt(0));
/** What may end the only line of an event, and the event. */
const ENDS = ['\n\n', '\r\n\r\n'];
/** Behind a backslash. */
const ESCAPED: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));

/** What the members of an object may say. Texts and numbers that are not named here stay as they are. */
interface Level {
  readonly isList?: boolean;
  readonly said?: ReadonlySet<string>;
  /** All other texts are such as nobody counts. */
  readonly others?: boolean;
  readonly numbers?: ReadonlySet<string>;
  readonly inner?: ReadonlyMap<string, Level>;
}

const FUNCTION: Level = { others: true, said: new Set(['name', 'arguments']) };
const CALL: Level = { isList: true, others: true, inner: new Map([['function', FUNCTION]]) };
const DELTA: Level = {
  others: true,
  said: new Set(['content', 'reasoning_content', 'reasoning', 'refusal']),
  inner: new Map([['tool_calls', CALL]]),
};
/** How an answer ends is a text that counts. */
const CHOICE: Level = { isList: true, inner: new Map([['delta', DELTA]]) };
const CHUNK: Level = { others: true, numbers: new Set(['created']), inner: new Map([['choices', CHOICE]]) };

/** A shape that has more than names in it is longer, and one that has long names is not kept for others. */
const LONGEST_BARE = 1024;
const LITERALS: ReadonlySet<string> = new Set(['null', 'true', 'false']);
/** The words for how an answer ends. Another says something of the one stream that it was said in. */
const REASONS: ReadonlySet<string> = new Set(
  ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'].map((reason) => `"${reason}"`),
);
const SMALL = /^[0-9]{1,3}$/;
const WHOLE = /^(0|[1-9][0-9]*)$/;

const decoder = new TextDecoder();

/**
 * The shape of an event that was read: one line of data with a chunk that has one choice, which says so many bytes. Undefined
 * where the event is written in another way than nearly all are, or where a name stands twice.
 */
export function shapeOf(event: Uint8Array, bytesSaid: number): Shape | undefined {
  let open = DATA.length;
  while (event[open] === SPACE) open += 1;
  if (DATA.some((byte, at) => event[at] !== byte) || event[open] !== OPEN_BRACE) return undefined;
  const chunk = membersOf(event, open);
  if (!ENDS.includes(decoder.decode(event.subarray(chunk.close + 1)))) return undefined;
  const reading: Reading = { found: [], isBare: true };
  if (!read(event, chunk, CHUNK, reading)) return undefined;
  const { found } = reading;
  const alwaysSaid = found.reduce(
    (left, { start, end, gap }) => left - (gap === 'said' ? saidIn(event, start, end) : 0),
    bytesSaid,
  );
  const starts = [0, ...found.map(({ end }) => end)];
  const fixed = starts.map((start, at) => toFixed(event.subarray(start, found[at]?.start ?? event.length)));
  const length = fixed.reduce((sum, bytes) => sum + bytes.length, 0);
  const isBare = reading.isBare && alwaysSaid === 0 && length <= LONGEST_BARE;
  const gaps = found.map(({ gap }) => gap);
  return { fixed, gaps, firstSaid: gaps.indexOf('said'), alwaysSaid, isBare };
}

/** The events of this shape that begin here and end in these bytes, one after another; undefined: not even one. */
export function runOf(shape: Shape, packet: Packet, from: number): Run | undefined {
  const { fixed, gaps, firstSaid } = shape;
  const { bytes } = packet;
  let run: { end: number; deltas: number; bytesSaid: number } | undefined;
  let before = 0;
  /** So many bytes of the event before stand before what it says: ids and dates of a stream are the same in all its events. */
  let lead = 0;
  for (let at = from; at < bytes.length; ) {
    const start = at;
    const isLed = lead > 0 && repeats(packet, before, start, lead);
    let said = shape.alwaysSaid;
    for (let part = isLed ? firstSaid : 0; ; part += 1) {
      const next = fixed[part];
      if (next === undefined) break;
      at = isLed && part === firstSaid ? start + lead : behind(next, packet, at);
      if (at === -1) return run;
      const gap = gaps[part];
      if (gap === undefined) break;
      if (part === firstSaid) lead = at - start;
      const end = gap === 'number' ? numberEnd(bytes, at) : textEnd(bytes, at);
      if (end === -1) return run;
      if (gap === 'said') said += saidIn(bytes, at, end);
      at = end;
    }
    before = start;
    run ??= { end: from, deltas: 0, bytesSaid: 0 };
    run.end = at;
    run.bytesSaid += said;
    if (said > 0) run.deltas += 1;
  }
  return run;
}

/** Where a text ends that begins here, if it does and JSON allows it. */
function textEnd(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) return at;
    if (byte < SPACE) return -1;
    if (byte !== BACKSLASH) continue;
    at += 1;
    const escaped = bytes[at] ?? 0;
    if (escaped === LOWER_U && isHex(bytes, at + 1)) at += 4;
    else if (!ESCAPED.has(escaped)) return -1;
  }
  return -1;
}

/** Where a whole number ends that begins here, if one does and JSON allows it. */
function numberEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && isDigit(bytes[at] ?? 0)) at += 1;
  return at === from || (bytes[from] === ZERO && at > from + 1) ? -1 : at;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function isHex(bytes: Uint8Array, from: number): boolean {
  return /^[0-9a-fA-F]{4}$/.test(String.fromCharCode(...bytes.subarray(from, from + 4)));
}

/** Bytes of the text that is written so. */
function saidIn(bytes: Uint8Array, from: number, end: number): number {
  let said = end - from;
  for (let at = from; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === BACKSLASH) {
      at += 1;
      said -= 1;
    }
    if (byte > 0x7f || (byte === BACKSLASH && bytes[at] === LOWER_U)) return decodedIn(bytes, from, end);
  }
  return said;
}

function decodedIn(bytes: Uint8Array, from: number, end: number): number {
  const text: unknown = JSON.parse(decoder.decode(bytes.subarray(from - 1, end + 1)));
  return typeof text === 'string' ? bytesIn(text) : 0;
}

interface Reading {
  /** In the order they are written. */
  readonly found: Found[];
  isBare: boolean;
}

/** False: a name stands twice, and which of the two counts is not for us to say. */
function read(event: Uint8Array, { members }: ObjectText, level: Level, reading: Reading): boolean {
  if (new Set(members.map(({ name }) => name)).size < members.length) return false;
  return members.every(({ name, valueStart, end }) => {
    const inner = level.inner?.get(name);
    const within = inner === undefined ? undefined : objectIn(event, valueStart, inner);
    if (inner !== undefined && within !== undefined) {
      const object = membersOf(event, within);
      // Of a list only the first is looked into.
      if (inner.isList && object.close + 2 !== end) reading.isBare = false;
      return read(event, object, inner, reading);
    }
    const gap = inner === undefined ? gapAt(event, valueStart, end, name, level) : undefined;
    if (gap === undefined) reading.isBare &&= isPlain(name, event.subarray(valueStart, end));
    else if (gap === 'number') reading.found.push({ start: valueStart, end, gap });
    else reading.found.push({ start: valueStart + 1, end: end - 1, gap });
    return true;
  });
}

function gapAt(event: Uint8Array, start: number, end: number, name: string, level: Level): Gap | undefined {
  if (event[start] === QUOTE) {
    if (level.said?.has(name)) return 'said';
    return level.others ? 'text' : undefined;
  }
  return level.numbers?.has(name) && WHOLE.test(decoder.decode(event.subarray(start, end))) ? 'number' : undefined;
}

/** A value that says nothing of the stream it stands in. */
function isPlain(name: string, value: Uint8Array): boolean {
  const text = decoder.decode(value.subarray(0, 20));
  if (name === 'finish_reason' && REASONS.has(text)) return true;
  return LITERALS.has(text) || (name === 'index' && SMALL.test(text));
}

/** Where the object begins that is this value, or the first of this list. What is written otherwise stays as it is. */
function objectIn(event: Uint8Array, value: number, { isList = false }: Level): number | undefined {
  if (!isList) return event[value] === OPEN_BRACE ? value : undefined;
  return event[value] === OPEN_BRACKET && event[value + 1] === OPEN_BRACE ? value + 1 : undefined;
}

// Is this event like one that was read before, but for its texts? Then no parser need read it: what it says is known but for how much.
import { bytesIn } from '../measure.ts';
import { membersOf, type ObjectText } from '../members.ts';

/** An event without the texts that differ from event to event. */
export interface Shape {
  /** The bytes around the texts, quotes included: one more than there are texts. */
  readonly fixed: ReadonlyArray<Uint8Array>;
  /** Of each text, whether the model said it. */
  readonly said: ReadonlyArray<boolean>;
  /** Bytes that every event of this shape says. */
  readonly alwaysSaid: number;
}

/** An event of a known shape. */
export interface Likeness {
  /** Just behind its blank line. */
  readonly end: number;
  readonly bytesSaid: number;
}

interface Text {
  /** Behind its first quote, and at its last. */
  readonly start: number;
  readonly end: number;
  readonly said: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const SPACE = 0x20;
const LOWER_U = 0x75;
const DATA = [...'data:'].map((letter) => letter.charCodeAt(0));
/** What may end the only line of an event, and the event. */
const ENDS = ['\n\n', '\r\n\r\n'];
/** Behind a backslash. */
const ESCAPED: ReadonlySet<number> = new Set([...'"\\/bfnrt'].map((letter) => letter.charCodeAt(0)));

/** What the members of an object may say: those named, nothing, or anything that nobody counts. */
interface Level {
  readonly isList?: boolean;
  readonly texts?: ReadonlySet<string> | 'any';
  readonly inner?: ReadonlyMap<string, Level>;
}

const FUNCTION: Level = { texts: new Set(['name', 'arguments']) };
const CALL: Level = { isList: true, texts: 'any', inner: new Map([['function', FUNCTION]]) };
const DELTA: Level = {
  texts: new Set(['content', 'reasoning_content', 'reasoning', 'refusal']),
  inner: new Map([['tool_calls', CALL]]),
};
const CHOICE: Level = { isList: true, inner: new Map([['delta', DELTA]]) };
const CHUNK: Level = { texts: 'any', inner: new Map([['choices', CHOICE]]) };

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
  const texts: Text[] = [];
  if (!read(event, chunk, CHUNK, texts)) return undefined;
  const alwaysSaid = texts.reduce(
    (left, { start, end, said }) => left - (said ? saidIn(event, start, end) : 0),
    bytesSaid,
  );
  const starts = [0, ...texts.map(({ end }) => end)];
  const fixed = starts.map((start, at) => event.slice(start, texts[at]?.start ?? event.length));
  return { fixed, said: texts.map(({ said }) => said), alwaysSaid };
}

/** Whether an event of this shape begins here and ends in these bytes. */
export function likeness({ fixed, said, alwaysSaid }: Shape, bytes: Uint8Array, from: number): Likeness | undefined {
  let bytesSaid = alwaysSaid;
  let at = from;
  for (let part = 0; part < fixed.length; part += 1) {
    at = behind(fixed[part], bytes, at);
    if (at === -1) return undefined;
    if (part === said.length) break;
    const end = textEnd(bytes, at);
    if (end === -1) return undefined;
    if (said[part]) bytesSaid += saidIn(bytes, at, end);
    at = end;
  }
  return { end: at, bytesSaid };
}

function behind(fixed: Uint8Array | undefined, bytes: Uint8Array, from: number): number {
  if (fixed === undefined || from + fixed.length > bytes.length) return -1;
  for (let at = 0; at < fixed.length; at += 1) if (fixed[at] !== bytes[from + at]) return -1;
  return from + fixed.length;
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

/** Texts in the order they are written. False: a name stands twice, and which of the two counts is not for us to say. */
function read(event: Uint8Array, { members }: ObjectText, { texts, inner }: Level, found: Text[]): boolean {
  if (new Set(members.map(({ name }) => name)).size < members.length) return false;
  return members.every(({ name, valueStart, end }) => {
    const level = inner?.get(name);
    const within = level === undefined ? undefined : objectIn(event, valueStart, level);
    if (level !== undefined) return within === undefined || read(event, membersOf(event, within), level, found);
    const said = texts instanceof Set && texts.has(name);
    if (event[valueStart] === QUOTE && (said || texts === 'any')) {
      found.push({ start: valueStart + 1, end: end - 1, said });
    }
    return true;
  });
}

/** Where the object begins that is this value, or the first of this list. What is written otherwise stays as it is. */
function objectIn(event: Uint8Array, value: number, { isList = false }: Level): number | undefined {
  if (!isList) return event[value] === OPEN_BRACE ? value : undefined;
  return event[value] === OPEN_BRACKET && event[value + 1] === OPEN_BRACE ? value + 1 : undefined;
}

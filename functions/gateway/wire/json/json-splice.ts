// Members of a JSON object with their offsets in its text, and changes of a few members that keep the rest of the text.
import { copyOf } from '#core/json/text.ts';
import { bytesIn } from '../prompt/prompt.ts';

/** One member of an object, as offsets into the text it is in. */
export interface Member {
  readonly name: string;
  /** The offset of the name's first quote. */
  readonly start: number;
  readonly valueStart: number;
  /** The offset after the value. */
  readonly end: number;
}

/** The offset of an object's brace, and its members in their order, repeated names included. */
export interface ObjectText {
  readonly open: number;
  readonly members: ReadonlyArray<Member>;
}

export interface Changes {
  /** Names with their new values in JSON. A new name is added at the end. */
  readonly set?: ReadonlyArray<NewValue>;
  /** Names to remove, every occurrence. */
  readonly drop?: ReadonlySet<string>;
  /** Names of which only the last occurrence stays, as in JSON.parse. */
  readonly once?: ReadonlySet<string>;
}

export type NewValue = readonly [name: string, json: string];

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

const NO_NAMES: ReadonlySet<string> = new Set();

/**
 * The members of the object that begins at the first character after `from` that is no blank. The text must be valid
 * JSON: parse it first.
 */
export function membersOf(text: string, from = 0): ObjectText {
  const open = skipBlanks(text, from);
  const members: Member[] = [];
  let at = skipBlanks(text, open + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const nameEnd = skipString(text, at);
    const valueStart = skipBlanks(text, skipBlanks(text, nameEnd) + 1);
    const end = skipValue(text, valueStart);
    members.push({ name: unquote(text.slice(at, nameEnd)), start: at, valueStart, end });
    at = skipComma(text, end);
  }
  return { open, members };
}

/** Offsets of the objects in the list at `from`, or of the object at `from`. Other elements are left out. */
export function elementsOf(text: string, from: number): ReadonlyArray<number> {
  if (text.charCodeAt(from) !== OPEN_BRACKET) return text.charCodeAt(from) === OPEN_BRACE ? [from] : [];
  const found: number[] = [];
  let at = skipBlanks(text, from + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    if (text.charCodeAt(at) === OPEN_BRACE) found.push(at);
    at = skipComma(text, skipValue(text, at));
  }
  return found;
}

/** The text with these changes. It contains each name in `set` once. */
export function splice(text: string, object: ObjectText, changes: Changes): string {
  let spliced = '';
  let from = 0;
  for (const { start, end, replacement } of editsOf(object, changes)) {
    spliced += text.slice(from, start) + replacement;
    from = end;
  }
  return spliced + text.slice(from);
}

/** A text and its bytes. */
export interface EncodedText {
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Each character is one byte, so offsets in the text and in the bytes are equal. */
  readonly isAscii: boolean;
}

/**
 * The same changes in the bytes of the text: parts of the bytes, with the new texts between them. Unchanged bytes are
 * neither copied nor encoded.
 */
export function spliceBytes(
  sent: EncodedText,
  object: ObjectText,
  changes: Changes,
): ReadonlyArray<Uint8Array | string> {
  const { bytes } = sent;
  const parts: Array<Uint8Array | string> = [];
  let known: Offset = { text: 0, bytes: 0 };
  for (const { start, end, replacement } of editsOf(object, changes)) {
    const from = known.bytes;
    known = offsetAt(start, known, sent);
    if (known.bytes > from) parts.push(bytes.subarray(from, known.bytes));
    if (replacement !== '') parts.push(replacement);
    known = offsetAt(end, known, sent);
  }
  parts.push(bytes.subarray(known.bytes));
  return parts;
}

/** The same place in a text and in its bytes. */
interface Offset {
  readonly text: number;
  readonly bytes: number;
}

/**
 * The place of an offset, counted from the known place before it or from the end, whichever is nearer. Most members are
 * beside one very long member.
 */
function offsetAt(offset: number, known: Offset, sent: EncodedText): Offset {
  if (sent.isAscii) return { text: offset, bytes: offset };
  const { text, bytes } = sent;
  const isNear = offset - known.text < text.length - offset;
  const size = isNear ? bytesIn(text.slice(known.text, offset)) : bytesIn(text.slice(offset));
  return { text: offset, bytes: isNear ? known.bytes + size : bytes.length - size };
}

/** A part of a text, and the text that takes its place. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Edits in the order of the text. */
function editsOf({ open, members }: ObjectText, changes: Changes): ReadonlyArray<Edit> {
  const { set = [], drop = NO_NAMES, once = NO_NAMES } = changes;
  const lastIndexes = new Map<string, number>();
  for (let at = 0; at < members.length; at += 1) lastIndexes.set(members[at]?.name ?? '', at);
  const isKept = ({ name }: Member, at: number) =>
    !drop.has(name) && (lastIndexes.get(name) === at || (!once.has(name) && newValueIn(set, name) === undefined));
  const last = members.findLastIndex(isKept);
  const edits: Edit[] = [];
  members.forEach((member, at) => {
    const { start, valueStart, end } = member;
    // A removed member takes the comma after it; the last ones take the comma before them.
    if (!isKept(member, at)) {
      if (at < last) edits.push({ start, end: members[at + 1]?.start ?? end, replacement: '' });
      else edits.push({ start: members[at - 1]?.end ?? start, end, replacement: '' });
      return;
    }
    const value = newValueIn(set, member.name);
    if (value !== undefined) edits.push({ start: valueStart, end, replacement: value });
  });
  let added = '';
  let comma = last === -1 ? '' : ',';
  for (const [name, value] of set) {
    if (!drop.has(name) && lastIndexes.has(name)) continue;
    added += `${comma}${JSON.stringify(name)}:${value}`;
    comma = ',';
  }
  const insertAt = members.at(-1)?.end ?? open + 1;
  if (added !== '') edits.push({ start: insertAt, end: insertAt, replacement: added });
  return edits;
}

function newValueIn(set: ReadonlyArray<NewValue>, wanted: string): string | undefined {
  for (const [name, value] of set) if (name === wanted) return value;
  return undefined;
}

/** A text of JSON without its quotes. Most contain no escapes: parsing them as JSON takes ten times as long. */
export function unquote(quoted: string): string {
  return quoted.includes('\\') ? String(JSON.parse(quoted)) : copyOf(quoted.slice(1, -1));
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

function skipComma(text: string, from: number): number {
  const at = skipBlanks(text, from);
  return text.charCodeAt(at) === COMMA ? skipBlanks(text, at + 1) : at;
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/**
 * The end of a string. Prompts are long, and the engine finds a quote faster than a loop over characters. If the first
 * quote is escaped, many may be, and the loop is faster.
 */
function skipString(text: string, from: number): number {
  const quote = text.indexOf('"', from + 1);
  if (quote === -1) return text.length;
  let at = quote;
  while (text.charCodeAt(at - 1) === BACKSLASH) at -= 1;
  if ((quote - at) % 2 === 0) return quote + 1;
  for (at = quote + 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return at + 1;
    if (unit === BACKSLASH) at += 1;
  }
  return text.length;
}

function skipValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return skipString(text, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipLiteral(text, from);
  let depth = 0;
  let at = from;
  do {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    if (unit === OPEN_BRACE || unit === OPEN_BRACKET) depth += 1;
    if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) depth -= 1;
    at += 1;
  } while (depth > 0 && at < text.length);
  return at;
}

function skipLiteral(text: string, from: number): number {
  let at = from;
  while (at < text.length && !isLiteralEnd(text.charCodeAt(at))) at += 1;
  return at;
}

function isLiteralEnd(unit: number): boolean {
  return unit === COMMA || unit === CLOSE_BRACE || unit === CLOSE_BRACKET || isBlank(unit);
}

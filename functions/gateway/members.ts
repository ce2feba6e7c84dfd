// Where do the members of a JSON object stand in its bytes, and how are a few of them changed while all else stays?

/** One member of an object, as byte offsets into the text it stands in. */
export interface Member {
  readonly name: string;
  /** Of the name's first quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Just behind the value. */
  readonly end: number;
}

/** Offsets of the object's own braces, and its members in the order they are written, repeated names included. */
export interface ObjectText {
  readonly open: number;
  readonly close: number;
  readonly members: ReadonlyArray<Member>;
}

export interface Changes {
  /** Names with their new values in JSON. A name that was not there is added at the end. */
  readonly set?: ReadonlyArray<NewValue>;
  /** Taken out, every occurrence. */
  readonly drop?: ReadonlySet<string>;
  /** Of these only the last occurrence stays: the one that JSON.parse takes. */
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

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const NO_NAMES: ReadonlySet<string> = new Set();

/** The members of the object that begins at the first byte behind `from` that is no blank. The bytes must be valid JSON: parse them first. */
export function membersOf(bytes: Uint8Array, from = 0): ObjectText {
  const open = skipBlanks(bytes, from);
  const members: Member[] = [];
  let at = skipBlanks(bytes, open + 1);
  while (bytes[at] === QUOTE) {
    const nameEnd = skipString(bytes, at);
    const valueStart = skipBlanks(bytes, skipBlanks(bytes, nameEnd) + 1);
    const end = skipValue(bytes, valueStart);
    members.push({ name: nameOf(bytes, at, nameEnd), start: at, valueStart, end });
    at = skipBlanks(bytes, end);
    if (bytes[at] === COMMA) at = skipBlanks(bytes, at + 1);
  }
  return { open, close: at, members };
}

/** Where the objects begin of the list that begins here, or of the object itself: what else is in a list is left out. */
export function elementsOf(bytes: Uint8Array, from: number): ReadonlyArray<number> {
  if (bytes[from] !== OPEN_BRACKET) return bytes[from] === OPEN_BRACE ? [from] : [];
  const found: number[] = [];
  let at = skipBlanks(bytes, from + 1);
  while (at < bytes.length && bytes[at] !== CLOSE_BRACKET) {
    if (bytes[at] === OPEN_BRACE) found.push(at);
    at = skipBlanks(bytes, skipValue(bytes, at));
    if (bytes[at] === COMMA) at = skipBlanks(bytes, at + 1);
  }
  return found;
}

/** The text with these changes, everything else byte for byte. A name that is set stands once afterwards. */
export function splice(bytes: Uint8Array, object: ObjectText, changes: Changes): Uint8Array {
  const { set = [], drop = NO_NAMES, once = NO_NAMES } = changes;
  const { members } = object;
  const newValue = (name: string) => set.find((one) => one[0] === name)?.[1];
  const isKept = ({ name }: Member, at: number) =>
    !drop.has(name) && !((once.has(name) || newValue(name) !== undefined) && standsBehind(members, name, at));
  const kept = members.every(isKept) ? members : members.filter(isKept);
  const out = createWriter(bytes, set);
  if (kept === members) {
    // Every byte between the values stays.
    for (const { name, valueStart, end } of kept) {
      const value = newValue(name);
      if (value !== undefined) out.copyTo(valueStart).put(value).skipTo(end);
    }
    out.copyTo(kept.at(-1)?.end ?? object.open + 1);
  } else {
    out.copyTo(object.open + 1);
    kept.forEach(({ name, start, valueStart, end }, index) => {
      const value = newValue(name);
      if (index > 0) out.put(',');
      out.skipTo(start).copyTo(value === undefined ? end : valueStart);
      if (value !== undefined) out.put(value);
    });
    out.skipTo(object.close);
  }
  let separator = kept.length > 0 ? ',' : '';
  for (const [name, value] of set) {
    if (!drop.has(name) && members.some((member) => member.name === name)) continue;
    out.put(`${separator}${JSON.stringify(name)}:${value}`);
    separator = ',';
  }
  return out.copyTo(bytes.length).written();
}

/** Which is asked of few names: those repeated without end are found where they stand next. */
function standsBehind(members: ReadonlyArray<Member>, name: string, at: number): boolean {
  for (let next = at + 1; next < members.length; next += 1) if (members[next]?.name === name) return true;
  return false;
}

/** Copies a text piece by piece into one buffer, with new words in between. */
function createWriter(bytes: Uint8Array, words: ReadonlyArray<NewValue>) {
  // A UTF-16 unit takes at most three bytes, and JSON may write a name's as six characters; then quotes, a colon, commas.
  const added = words.reduce((sum, [name, value]) => sum + name.length * 6 + value.length * 3 + 4, 0);
  const out = new Uint8Array(bytes.length + added);
  let from = 0;
  let at = 0;
  const writer = {
    copyTo: (end: number) => {
      out.set(bytes.subarray(from, end), at);
      at += end - from;
      return writer.skipTo(end);
    },
    skipTo: (place: number) => {
      from = place;
      return writer;
    },
    put: (text: string) => {
      const end = putPlain(text, out, at);
      at = end === -1 ? at + encoder.encodeInto(text, out.subarray(at)).written : end;
      return writer;
    },
    written: () => out.subarray(0, at),
  };
  return writer;
}

/** Most words are short and ASCII: writing them by hand takes a third of what the engine's encoder takes. -1: this one is not. */
function putPlain(text: string, out: Uint8Array, from: number): number {
  if (text.length > LONGEST_PLAIN) return -1;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) return -1;
    out[from + at] = unit;
  }
  return from + text.length;
}

export function concat(pieces: ReadonlyArray<Uint8Array>): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Names of ours are shorter; putting a long one together byte by byte is the slower way. */
const LONGEST_PLAIN = 64;

/** Names that were read before, by a number that their bytes make: nearly all of a request's are the same few. */
const known = new Map<number, string>();
const MOST_KNOWN = 1000;

function nameOf(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > LONGEST_PLAIN) return readName(bytes, start, end);
  let number = 0;
  for (let at = start + 1; at < end - 1; at += 1) {
    const byte = bytes[at] ?? 0;
    // Anything but plain ASCII is read as JSON has it, which takes ten times as long.
    if (byte > 0x7e || byte === BACKSLASH) return readName(bytes, start, end);
    number = (Math.imul(number, 31) + byte) | 0;
  }
  const before = known.get(number);
  if (before !== undefined && isWritten(before, bytes, start + 1, end - 1)) return before;
  const name = readName(bytes, start, end);
  if (known.size < MOST_KNOWN) known.set(number, name);
  return name;
}

/** Whether this plain name is what the bytes say. */
function isWritten(name: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let at = 0; at < name.length; at += 1) if (name.charCodeAt(at) !== bytes[start + at]) return false;
  return true;
}

function readName(bytes: Uint8Array, start: number, end: number): string {
  const name: unknown = JSON.parse(decoder.decode(bytes.subarray(start, end)));
  return String(name);
}

function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && isBlank(bytes[at])) at += 1;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Texts that are longer than this are searched by the engine, three times as fast as byte by byte: prompts are long. */
const NEAR = 64;

function skipString(bytes: Uint8Array, from: number): number {
  let at = from + 1;
  while (at < bytes.length) {
    // Also behind each escaped quote, so that a text of nothing else takes no longer.
    for (const near = at + NEAR; at < near; ) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      at += byte === BACKSLASH ? 2 : 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) break;
    let escapes = quote;
    while (escapes > at && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    at = quote + 1;
    if ((quote - escapes) % 2 === 0) return at;
  }
  return bytes.length + 1;
}

function skipValue(bytes: Uint8Array, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return skipString(bytes, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipLiteral(bytes, from);
  let depth = 0;
  let at = from;
  do {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = skipString(bytes, at);
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
    at += 1;
  } while (depth > 0 && at < bytes.length);
  return at;
}

function skipLiteral(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && !isBlank(bytes[at]) && bytes[at] !== COMMA && bytes[at] !== CLOSE_BRACE) at += 1;
  return at;
}

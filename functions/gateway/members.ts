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
  /** Name → its new value in JSON. A name that was not there is added at the end. */
  readonly set?: ReadonlyMap<string, string>;
  /** Taken out, every occurrence. */
  readonly drop?: ReadonlySet<string>;
  /** Of these only the last occurrence stays: the one that JSON.parse takes. */
  readonly once?: ReadonlySet<string>;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const COMMA_TEXT = encoder.encode(',');
const NOTHING = new Uint8Array(0);
const NO_TEXTS: ReadonlyMap<string, string> = new Map();
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

/** The text with these changes, everything else byte for byte. A name that is set stands once afterwards. */
export function splice(bytes: Uint8Array, object: ObjectText, changes: Changes): Uint8Array {
  const { set = NO_TEXTS, drop = NO_NAMES, once = NO_NAMES } = changes;
  /** Of those that may stand only once. */
  const last = new Map<string, Member>();
  for (const member of object.members) {
    if (set.has(member.name) || once.has(member.name)) last.set(member.name, member);
  }
  const kept = object.members.filter(
    (member) => !drop.has(member.name) && (last.get(member.name) ?? member) === member,
  );
  const added: string[] = [];
  for (const [name, value] of set) {
    if (!last.has(name) || drop.has(name)) added.push(`${JSON.stringify(name)}:${value}`);
  }
  const addition = added.length === 0 ? NOTHING : encoder.encode(added.join(','));
  const comma = added.length > 0 && kept.length > 0 ? COMMA_TEXT : NOTHING;
  const tail = kept.at(-1)?.end ?? object.open + 1;
  return kept.length === object.members.length
    ? concat([...inPlace(bytes, kept, set, tail), comma, addition, bytes.subarray(tail)])
    : concat([...rewritten(bytes, object, kept, set), comma, addition, bytes.subarray(object.close)]);
}

/** Nothing is taken out: every byte between the values stays. */
function inPlace(
  bytes: Uint8Array,
  kept: ReadonlyArray<Member>,
  set: ReadonlyMap<string, string>,
  tail: number,
): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const member of kept) {
    const value = set.get(member.name);
    if (value === undefined) continue;
    pieces.push(bytes.subarray(from, member.valueStart), encoder.encode(value));
    from = member.end;
  }
  return [...pieces, bytes.subarray(from, tail)];
}

function rewritten(
  bytes: Uint8Array,
  object: ObjectText,
  kept: ReadonlyArray<Member>,
  set: ReadonlyMap<string, string>,
): Uint8Array[] {
  const members = kept.flatMap((member, index) => {
    const value = set.get(member.name);
    const comma = index > 0 ? [COMMA_TEXT] : [];
    if (value === undefined) return [...comma, bytes.subarray(member.start, member.end)];
    return [...comma, bytes.subarray(member.start, member.valueStart), encoder.encode(value)];
  });
  return [bytes.subarray(0, object.open + 1), ...members];
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

function nameOf(bytes: Uint8Array, start: number, end: number): string {
  if (end - start > LONGEST_PLAIN) return readName(bytes, start, end);
  let plain = '';
  for (let at = start + 1; at < end - 1; at += 1) {
    const byte = bytes[at] ?? 0;
    // Anything but plain ASCII is read as JSON has it, which takes ten times as long.
    if (byte > 0x7e || byte === BACKSLASH) return readName(bytes, start, end);
    plain += String.fromCharCode(byte);
  }
  return plain;
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

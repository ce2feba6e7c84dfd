// The members of a JSON object where they stand in its bytes, and a few of them changed while all else stays.

/** One member of an object, as byte offsets into the text it stands in. */
export interface Member {
  readonly name: string;
  /** Of the name's first quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Just behind the value. */
  readonly end: number;
}

/** Where an object opens, and its members in the order they are written, repeated names included. */
export interface ObjectText {
  readonly open: number;
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
  return { open, members };
}

/** Offsets of the objects in the list that begins here, or of the object itself. Other elements are left out. */
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
export function splice(bytes: Uint8Array, { open, members }: ObjectText, changes: Changes): Uint8Array {
  const { set = [], drop = NO_NAMES, once = NO_NAMES } = changes;
  const newValueOf = (name: string) => set.find(([other]) => other === name)?.[1];
  const isLast = (name: string, at: number) => members.findLastIndex((other) => other.name === name) === at;
  const stays = ({ name }: Member, at: number) =>
    !drop.has(name) && ((!once.has(name) && newValueOf(name) === undefined) || isLast(name, at));
  const last = members.findLastIndex(stays);
  const pieces: Array<Uint8Array | string> = [];
  let from = 0;
  const replace = (start: number, end: number, text: string) => {
    pieces.push(bytes.subarray(from, start), text);
    from = end;
  };
  for (const [at, member] of members.entries()) {
    const { name, start, valueStart, end } = member;
    const value = newValueOf(name);
    // A member goes with the comma behind it, the last ones with the comma before them.
    if (!stays(member, at)) {
      if (at < last) replace(start, members[at + 1]?.start ?? end, '');
      else replace(members[at - 1]?.end ?? start, end, '');
    } else if (value !== undefined) replace(valueStart, end, value);
  }
  const isNew = ([name]: NewValue) => drop.has(name) || !members.some((member) => member.name === name);
  const added = set.filter(isNew).map(([name, value]) => `${JSON.stringify(name)}:${value}`);
  const behind = members.at(-1)?.end ?? open + 1;
  if (added.length > 0) replace(behind, behind, `${last === -1 ? '' : ','}${added.join()}`);
  pieces.push(bytes.subarray(from));
  return concat(pieces);
}

/** These bytes and texts as one. */
export function concat(pieces: ReadonlyArray<Uint8Array | string>): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && typeof only === 'object') return only;
  let length = 0;
  // A UTF-16 unit is at most three bytes.
  for (const piece of pieces) length += typeof piece === 'string' ? 3 * piece.length : piece.length;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    if (typeof piece === 'string') at += encoder.encodeInto(piece, whole.subarray(at)).written;
    else {
      whole.set(piece, at);
      at += piece.length;
    }
  }
  return at === length ? whole : whole.subarray(0, at);
}

/** Most names are plain ASCII: read as JSON, they take ten times as long. */
function nameOf(bytes: Uint8Array, start: number, end: number): string {
  let name = '';
  for (let at = start + 1; at < end - 1; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte > 0x7e || byte === BACKSLASH) return String(JSON.parse(decoder.decode(bytes.subarray(start, end))));
    name += String.fromCharCode(byte);
  }
  return name;
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

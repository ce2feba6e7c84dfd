// Records on disk: a line of CRC-32 in hex, a blank, and JSON in which money is a decimal string; and the page of one
// write.
import { crc32 } from 'node:zlib';
import type { JournalRecord } from '#core/ports/journal.ts';
import type { LedgerRow } from '#core/ports/ledger-rows.ts';

const CHECK_LENGTH = 8;

export const LINE_FEED = 10;
const BLANK = 32;

export interface Page {
  /** Adds a record; returns the length of its line. */
  add(record: JournalRecord): number;
  /** The page's bytes, valid until the next `add`. `afterTear`: starts with a line feed that ends a torn line. */
  bytes(afterTear: boolean): Uint8Array;
  /** Empties the page. */
  clear(): void;
}

const FIRST_SIZE = 16 * 1024;

export function createPage(): Page {
  let buffer = Buffer.alloc(FIRST_SIZE, LINE_FEED);
  // The first byte is the line feed that ends a torn line.
  let end = 1;
  return {
    add(record) {
      const text = toText(record);
      const needed = end + maxBytes(text);
      if (needed > buffer.length) buffer = Buffer.concat([buffer], 2 * needed);
      const begin = end;
      end = writeLine(text, buffer, begin);
      return end - begin;
    },
    bytes: (afterTear) => buffer.subarray(afterTear ? 0 : 1, end),
    clear() {
      end = 1;
    },
  };
}

/** A line: JSON, and bytes that replace its end. So the scope windows, half of the line, are encoded only once. */
interface LineText {
  readonly json: string;
  /** How many of the last bytes of `json` are replaced. */
  readonly replaced: number;
  readonly tail: Uint8Array;
}

/** The maximum length of a line. */
const maxBytes = ({ json, tail }: LineText): number => CHECK_LENGTH + 2 + 3 * json.length + tail.length;

/** Writes a line; returns its end. */
function writeLine({ json, replaced, tail }: LineText, to: Buffer, at: number): number {
  const begin = at + CHECK_LENGTH + 1;
  const tailAt = begin + to.write(json, begin) - replaced;
  to.set(tail, tailAt);
  const end = tailAt + tail.length;
  writeCheck(crc32(to.subarray(begin, end)), to, at);
  to[end] = LINE_FEED;
  return end + 1;
}

function writeCheck(sum: number, to: Buffer, at: number): void {
  for (let digit = 0; digit < CHECK_LENGTH; digit += 1) {
    to[at + digit] = HEX.charCodeAt((sum >>> (4 * (CHECK_LENGTH - 1 - digit))) & 15);
  }
  to[at + CHECK_LENGTH] = BLANK;
}

const HEX = '0123456789abcdef';

/** The record of a line without its line feed; undefined for a torn or damaged line. */
export function fromLine(line: string): JournalRecord | undefined {
  const json = line.slice(CHECK_LENGTH + 1);
  if (line.charAt(CHECK_LENGTH) !== ' ' || line.slice(0, CHECK_LENGTH) !== check(json)) return undefined;
  try {
    return fromPlain(JSON.parse(json));
  } catch {
    return undefined;
  }
}

export const idOf = (record: JournalRecord): string => ('row' in record ? record.row.id : record.id);

const check = (json: string): string => crc32(json).toString(16).padStart(CHECK_LENGTH, '0');

type Text<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] };
type Plain<T> = T extends { readonly row: LedgerRow } ? Omit<T, 'row'> & { readonly row: Text<LedgerRow> } : Text<T>;
type PlainRecord = Plain<JournalRecord>;

/** A record as JSON, its scope windows last. Every request writes two. */
function toText(record: JournalRecord): LineText {
  switch (record.type) {
    case 'reserve': {
      const { type, id, amount, scopeWindows, model, identifier } = record;
      const json = JSON.stringify({ type, id, model, identifier, amount: `${amount}` });
      return { json, replaced: 1, tail: tailOf(scopeWindows).ofReservation };
    }
    case 'progress':
      return { json: JSON.stringify({ ...record, cost: `${record.cost}` }), ...NOTHING };
    case 'settle': {
      const { id, kind, cost, scopeWindows, tokens, model, identifier, estimated, settledAt } = record.row;
      const row = { id, kind, tokens, model, identifier, estimated, settledAt, cost: `${cost}` };
      return { json: JSON.stringify({ type: record.type, row }), replaced: 2, tail: tailOf(scopeWindows).ofRow };
    }
    case 'release':
    case 'account':
      return { json: JSON.stringify(record), ...NOTHING };
  }
}

const NOTHING = { replaced: 0, tail: new Uint8Array(0) };

interface Tail {
  readonly ofReservation: Uint8Array;
  readonly ofRow: Uint8Array;
}

/** Encoded scope windows, cached by list: the ledger reuses the list for the same scopes and windows (counters.ts). */
const tails = new WeakMap<object, Tail>();

function tailOf(scopeWindows: LedgerRow['scopeWindows']): Tail {
  const cached = tails.get(scopeWindows);
  if (cached !== undefined) return cached;
  const text = `,"scopeWindows":${JSON.stringify(scopeWindows)}`;
  const tail = { ofReservation: Buffer.from(`${text}}`), ofRow: Buffer.from(`${text}}}`) };
  tails.set(scopeWindows, tail);
  return tail;
}

/** The record of parsed JSON. The checksum proves that this code wrote it, so only money is converted. */
function fromPlain(record: PlainRecord): JournalRecord | undefined {
  switch (record.type) {
    case 'reserve':
      return { ...record, amount: BigInt(record.amount) };
    case 'progress':
      return { ...record, cost: BigInt(record.cost) };
    case 'settle':
      return { type: record.type, row: { ...record.row, cost: BigInt(record.row.cost) } };
    case 'release':
    case 'account':
      return record;
    default:
      return undefined;
  }
}

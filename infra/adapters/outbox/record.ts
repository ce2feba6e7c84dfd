// A record on disk: one line of CRC-32 in hex, a blank, and JSON in which money is a decimal string.
import { crc32 } from 'node:zlib';
import type { Entry } from '#core/ports/books.ts';
import type { OutboxRecord } from '#core/ports/outbox.ts';

const CHECK_LENGTH = 8;

export const LINE_FEED = 10;
const BLANK = 32;

/** A line's text: JSON, and what is written over its last bytes, so that the charges, which are half of it, are never made a text again. */
export interface LineText {
  readonly json: string;
  /** How many of its last bytes are written over. */
  readonly over: number;
  readonly rest: Uint8Array;
}

/** What the line takes at most. */
export const mostBytes = ({ json, rest }: LineText): number => CHECK_LENGTH + 2 + 3 * json.length + rest.length;

/** Answers where the line ends. */
export function writeLine({ json, over, rest }: LineText, to: Buffer, at: number): number {
  const begin = at + CHECK_LENGTH + 1;
  const joint = begin + to.write(json, begin) - over;
  to.set(rest, joint);
  const end = joint + rest.length;
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

/** The record of a line without its line feed, or undefined where the checksum or the shape is wrong: torn, or damaged. */
export function fromLine(line: string): OutboxRecord | undefined {
  const json = line.slice(CHECK_LENGTH + 1);
  if (line.charAt(CHECK_LENGTH) !== ' ' || line.slice(0, CHECK_LENGTH) !== check(json)) return undefined;
  try {
    return fromPlain(JSON.parse(json));
  } catch {
    return undefined;
  }
}

export const idOf = (record: OutboxRecord): string => ('entry' in record ? record.entry.id : record.id);

const check = (json: string): string => crc32(json).toString(16).padStart(CHECK_LENGTH, '0');

type Text<T> = { readonly [K in keyof T]: T[K] extends bigint ? string : T[K] };
type Plain<T> = T extends { readonly entry: Entry } ? Omit<T, 'entry'> & { readonly entry: Text<Entry> } : Text<T>;
type PlainRecord = Plain<OutboxRecord>;

/** As JSON would write a `PlainRecord`, its charges last. Every request writes two of them. */
export function toText(record: OutboxRecord): LineText {
  switch (record.type) {
    case 'hold': {
      const { type, id, amount, charges, model, identifier } = record;
      const json = JSON.stringify({ type, id, model, identifier, amount: `${amount}` });
      return { json, over: 1, rest: restOf(charges).ofHold };
    }
    case 'progress':
      return { json: JSON.stringify({ ...record, known: `${record.known}` }), ...NOTHING };
    case 'settle':
    case 'expired': {
      const { id, kind, cost, charges, tokens, model, identifier, estimated, settledAt } = record.entry;
      const entry = { id, kind, tokens, model, identifier, estimated, settledAt, cost: `${cost}` };
      return { json: JSON.stringify({ type: record.type, entry }), over: 2, rest: restOf(charges).ofEntry };
    }
    case 'release':
      return { json: JSON.stringify(record), ...NOTHING };
  }
}

const NOTHING = { over: 0, rest: new Uint8Array(0) };

interface Rest {
  readonly ofHold: Uint8Array;
  readonly ofEntry: Uint8Array;
}

/** The ledger charges the same scopes in the same windows by the same list (charges.ts). */
const rests = new WeakMap<object, Rest>();

function restOf(charges: Entry['charges']): Rest {
  const known = rests.get(charges);
  if (known !== undefined) return known;
  const text = `,"charges":${JSON.stringify(charges)}`;
  const rest = { ofHold: Buffer.from(`${text}}`), ofEntry: Buffer.from(`${text}}}`) };
  rests.set(charges, rest);
  return rest;
}

/** The checksum says that we wrote it, so its shape is ours; only money has to be read. */
function fromPlain(record: PlainRecord): OutboxRecord | undefined {
  switch (record.type) {
    case 'hold':
      return { ...record, amount: BigInt(record.amount) };
    case 'progress':
      return { ...record, known: BigInt(record.known) };
    case 'settle':
    case 'expired':
      return { type: record.type, entry: { ...record.entry, cost: BigInt(record.entry.cost) } };
    case 'release':
      return record;
    default:
      return undefined;
  }
}

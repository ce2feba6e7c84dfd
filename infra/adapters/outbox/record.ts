// How does a record look on disk? One line: CRC-32 in hex, a blank, JSON in which money is a decimal string.
import { crc32 } from 'node:zlib';
import type { Entry } from '#core/ports/books.ts';
import type { OutboxRecord } from '#core/ports/outbox.ts';

const CHECK_LENGTH = 8;

export const LINE_FEED = 10;
const BLANK = 32;

/** What the line of this JSON takes at most. */
export const mostBytes = (json: string): number => CHECK_LENGTH + 2 + 3 * json.length;

/** Answers where the line ends. */
export function writeLine(json: string, to: Buffer, at: number): number {
  const sum = crc32(json);
  for (let digit = 0; digit < CHECK_LENGTH; digit += 1) {
    to[at + digit] = HEX.charCodeAt((sum >>> (4 * (CHECK_LENGTH - 1 - digit))) & 15);
  }
  to[at + CHECK_LENGTH] = BLANK;
  const end = at + CHECK_LENGTH + 1 + to.write(json, at + CHECK_LENGTH + 1);
  to[end] = LINE_FEED;
  return end + 1;
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

/** As `JSON.stringify` would write a `PlainRecord`, in another order of members. Every request writes two of them. */
export function toJson(record: OutboxRecord): string {
  switch (record.type) {
    case 'hold': {
      const { type, id, amount, charges, model, identifier } = record;
      return `${open({ type, id, model, identifier })},"amount":"${amount}","charges":${textOf(charges)}}`;
    }
    case 'progress':
      return JSON.stringify({ ...record, known: `${record.known}` });
    case 'settle':
    case 'expired': {
      const { id, kind, cost, charges, tokens, model, identifier, estimated, settledAt } = record.entry;
      const rest = open({ id, kind, tokens, model, identifier, estimated, settledAt });
      return `{"type":"${record.type}","entry":${rest},"cost":"${cost}","charges":${textOf(charges)}}}`;
    }
    case 'release':
      return JSON.stringify(record);
  }
}

/** An object that goes on. */
const open = (members: object): string => JSON.stringify(members).slice(0, -1);

/** The ledger charges the same scopes in the same windows by the same list (charges.ts), which is half of a line. */
const texts = new WeakMap<object, string>();

function textOf(charges: Entry['charges']): string {
  const known = texts.get(charges);
  if (known !== undefined) return known;
  const text = JSON.stringify(charges);
  texts.set(charges, text);
  return text;
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

// How does a record look on disk? One line: CRC-32 in hex, a blank, JSON in which money is a decimal string.
import { crc32 } from 'node:zlib';
import type { Entry } from '#core/ports/books.ts';
import type { OutboxRecord } from '#core/ports/outbox.ts';

const CHECK_LENGTH = 8;

export function toLine(record: OutboxRecord): string {
  const json = JSON.stringify(toPlain(record));
  return `${check(json)} ${json}\n`;
}

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

function toPlain(record: OutboxRecord): PlainRecord {
  switch (record.type) {
    case 'hold':
      return { ...record, amount: `${record.amount}` };
    case 'progress':
      return { ...record, known: `${record.known}` };
    case 'settle':
    case 'expired':
      return { type: record.type, entry: { ...record.entry, cost: `${record.entry.cost}` } };
    case 'release':
      return record;
  }
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

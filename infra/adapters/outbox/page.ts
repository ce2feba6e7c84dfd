// The page of one write: lines one after the other, in memory that the next write uses again.
import type { OutboxRecord } from '#core/ports/outbox.ts';
import { LINE_FEED, mostBytes, toText, writeLine } from './record.ts';

export interface Page {
  /** Answers how many bytes its line takes. */
  add(record: OutboxRecord): number;
  /** All of it, until the next `add`. `onItsOwn`: begins with the end of a line that was torn. */
  bytes(onItsOwn: boolean): Uint8Array;
  /** Begins anew. */
  clear(): void;
}

const FIRST_SIZE = 16 * 1024;

export function createPage(): Page {
  let buffer = Buffer.alloc(FIRST_SIZE, LINE_FEED);
  // Before the first line there is always room for the end of another.
  let end = 1;
  return {
    add(record) {
      const text = toText(record);
      const needed = end + mostBytes(text);
      if (needed > buffer.length) buffer = Buffer.concat([buffer], 2 * needed);
      const begin = end;
      end = writeLine(text, buffer, begin);
      return end - begin;
    },
    bytes: (onItsOwn) => buffer.subarray(onItsOwn ? 0 : 1, end),
    clear() {
      end = 1;
    },
  };
}

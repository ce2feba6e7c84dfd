// Which files make up an outbox, and what is in them? Numbered segments, read in order; a damaged line never hides the next.
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { OutboxRecord } from '#core/ports/outbox.ts';
import { fromLine } from './record.ts';

const NAME = /^outbox-([0-9]{9})\.log$/;
const PART = '.part';

export const segmentPath = (folder: string, number: number): string =>
  join(folder, `outbox-${String(number).padStart(9, '0')}.log`);

/** Numbers of the segments in the folder, ascending; drafts of a crash are removed. */
export async function listSegments(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  await Promise.all(names.filter((name) => name.endsWith(PART)).map((name) => rm(join(folder, name), { force: true })));
  return names
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

export interface SegmentContent {
  readonly lines: ReadonlyArray<{ readonly line: string; readonly record: OutboxRecord }>;
  readonly bytes: number;
  /** Lines with a wrong checksum, the torn tail left out. */
  readonly damaged: number;
}

/** What was written whole. The tail that a death tore off is cut by its checksum. */
export async function readSegment(folder: string, number: number): Promise<SegmentContent> {
  const content = await readFile(segmentPath(folder, number));
  const texts = content.toString('utf8').split('\n');
  const tail = texts.pop();
  const lines: { line: string; record: OutboxRecord }[] = [];
  let damaged = 0;
  for (const text of texts) {
    const record = fromLine(text);
    if (record !== undefined) lines.push({ line: `${text}\n`, record });
    else if (text !== '') damaged += 1;
  }
  // A tail that lacks nothing but its line feed was written whole.
  const last = tail === undefined ? undefined : fromLine(tail);
  if (last !== undefined) lines.push({ line: `${tail}\n`, record: last });
  return { lines, bytes: content.length, damaged };
}

/** Writes a segment that is whole or not there, also after power loss. */
export async function writeSegment(folder: string, number: number, text: string): Promise<void> {
  const path = segmentPath(folder, number);
  await writeFile(path + PART, text, { flush: true });
  await rename(path + PART, path);
  const directory = await open(folder, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export async function removeSegments(folder: string, numbers: ReadonlyArray<number>): Promise<void> {
  await Promise.all(numbers.map((number) => rm(segmentPath(folder, number), { force: true })));
}

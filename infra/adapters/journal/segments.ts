// Segments of a journal: numbered files, read in order. A damaged line never hides the next one.
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JournalRecord } from '#core/ports/journal.ts';
import type { Line } from './open-lines.ts';
import { fromLine, LINE_FEED } from './record.ts';

const NAME = /^journal-([0-9]{9})\.log$/;
const PART = '.part';

export const segmentPath = (folder: string, number: number): string =>
  join(folder, `journal-${String(number).padStart(9, '0')}.log`);

export const isSegment = (name: string): boolean => NAME.test(name);

/** Returns the segment numbers in the folder, ascending. Removes segments that a crash has left half written. */
export async function listSegments(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  await Promise.all(names.filter((name) => name.endsWith(PART)).map((name) => rm(join(folder, name), { force: true })));
  return names
    .flatMap((name) => NAME.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

export interface SegmentContent {
  readonly lines: ReadonlyArray<{ readonly line: Line; readonly record: JournalRecord }>;
  readonly bytes: number;
  /** Lines with a wrong checksum, the torn tail left out. */
  readonly damaged: number;
}

/** The whole lines of a segment. The checksum rejects a tail that a crash tore. */
export async function readSegment(folder: string, number: number): Promise<SegmentContent> {
  const content = await readFile(segmentPath(folder, number));
  const lines: { line: Line; record: JournalRecord }[] = [];
  let damaged = 0;
  for (let at = 0; at < content.length; ) {
    const feed = content.indexOf(LINE_FEED, at);
    // A tail that lacks only its line feed is whole.
    const isTail = feed < 0;
    const text = content.toString('utf8', at, isTail ? content.length : feed);
    const end = (isTail ? content.length : feed) + 1;
    const record = fromLine(text);
    if (record !== undefined) {
      lines.push({ line: { segment: number, at, bytes: end - at, isProgress: record.type === 'progress' }, record });
    } else if (text !== '' && !isTail) damaged += 1;
    at = end;
  }
  return { lines, bytes: content.length, damaged };
}

/**
 * Copies these lines to a new segment and updates their positions. Returns its length; without lines no segment is
 * written.
 */
export async function copyLines(folder: string, lines: ReadonlyArray<Line>, target: number): Promise<number> {
  if (lines.length === 0) return 0;
  const content = await readLines(folder, lines);
  await writeSegment(folder, target, content);
  let end = 0;
  for (const line of lines) {
    line.segment = target;
    line.at = end;
    end += line.bytes;
  }
  return content.length;
}

/** The bytes of these lines from their segments, concatenated, each with its line feed. */
async function readLines(folder: string, lines: ReadonlyArray<Line>): Promise<Buffer> {
  const spans = new Map<number, Span>();
  for (const { segment, at, bytes } of lines) {
    const { from, to } = spans.get(segment) ?? { from: at, to: at };
    spans.set(segment, { from: Math.min(from, at), to: Math.max(to, at + bytes) });
  }
  const contents = new Map<number, Buffer>();
  for (const [number, span] of spans) contents.set(number, await readSpan(segmentPath(folder, number), span));
  const parts = lines.map(({ segment, at, bytes }) => {
    const begin = at - (spans.get(segment)?.from ?? 0);
    return contents.get(segment)?.subarray(begin, begin + bytes) ?? Buffer.of();
  });
  return Buffer.concat(parts);
}

interface Span {
  readonly from: number;
  readonly to: number;
}

async function readSpan(path: string, { from, to }: Span): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const span = Buffer.alloc(to - from, LINE_FEED);
    const { bytesRead } = await file.read({ buffer: span, position: from });
    // The last line of an earlier process may lack its line feed.
    if (bytesRead < span.length - 1) throw new Error(`${path} is shorter than expected`);
    return span;
  } finally {
    await file.close();
  }
}

/** Writes a segment atomically: whole or absent, also after power loss. */
async function writeSegment(folder: string, number: number, content: Buffer): Promise<void> {
  const path = segmentPath(folder, number);
  await writeFile(path + PART, content, { flush: true });
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

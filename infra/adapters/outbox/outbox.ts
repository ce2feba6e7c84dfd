// How does a promise outlive its process? In append-only files: one write a tick, fsync every second, what is done is cut away (LEDGER 6).
import { mkdirSync, writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Log } from '#core/ports/clock.ts';
import type { Outbox, OutboxRecord } from '#core/ports/outbox.ts';
import type { Timer } from '#core/ports/platform.ts';
import { lockFolder } from './lock.ts';
import { createOpenLines } from './open-lines.ts';
import { idOf, toLine } from './record.ts';
import { listSegments, readSegment, removeSegments, segmentPath, writeSegment } from './segments.ts';

export interface OutboxOptions {
  /** Made when missing. One process at a time: `FolderInUse` is thrown while another has it. */
  readonly folder: string;
  readonly log?: Log;
  readonly timer?: Timer;
  /** Bytes of finished records that may lie around before they are cut away. */
  readonly slack?: number;
  /** The system call; answers how many bytes it took. Default: Node's. */
  readonly write?: (descriptor: number, bytes: Uint8Array, from: number) => number;
}

/** What goes into one write: it is written for all who wait, or for none. */
interface Waiting {
  readonly lines: { readonly id: string; readonly line: string }[];
  readonly written: PromiseWithResolvers<void>;
}

interface Active {
  readonly number: number;
  readonly handle: FileHandle;
  unsynced: boolean;
  /** A write failed half way: the next line begins on a line of its own. */
  torn: boolean;
}

const SLACK = 4 * 1024 * 1024;
const MOST_SEGMENTS = 8;
const SYNC_EVERY = 1000;

export function createOutbox({
  folder,
  log,
  timer = unrefTimer,
  slack = SLACK,
  write = writeSync,
}: OutboxOptions): Outbox {
  mkdirSync(folder, { recursive: true });
  const lock = lockFolder(folder);
  const lines = createOpenLines();
  /** Bytes per segment. Those of earlier processes are known once they were read. */
  const segments = new Map<number, number>();
  const earlier = listSegments(folder);
  let waiting: Waiting | undefined;
  let draining: Promise<void> | undefined;
  let active: Active | undefined;
  let carrying: Promise<void> | undefined;
  let nextNumber: number | undefined;
  let recovered = false;
  let closed = false;
  /** Finished bytes beyond which cutting is tried (again). */
  let patience = slack;
  let cancelSync = timer(SYNC_EVERY, () => void sync());

  const activeSegment = async (): Promise<Active> => {
    if (active !== undefined) return active;
    nextNumber ??= ((await earlier).at(-1) ?? 0) + 1;
    const handle = await open(segmentPath(folder, nextNumber), 'a');
    active = { number: nextNumber, handle, unsynced: false, torn: false };
    segments.set(nextNumber, 0);
    nextNumber += 1;
    return active;
  };

  /** One write for all that came since the last one. */
  const drain = async (): Promise<void> => {
    while (waiting !== undefined) {
      const batch = waiting;
      waiting = undefined;
      try {
        writeAll(active ?? (await activeSegment()), batch);
        batch.written.resolve();
      } catch (cause) {
        if (active !== undefined) active.torn = true;
        batch.written.reject(new Error(`writing the outbox in ${folder}`, { cause }));
      }
      cutWhenDue();
    }
    draining = undefined;
  };

  /** It lands in the page cache within microseconds; handing it to another thread and back costs several times that. */
  const writeAll = (to: Active, batch: Waiting): void => {
    let text = to.torn ? '\n' : '';
    for (const { line } of batch.lines) text += line;
    const bytes = Buffer.from(text);
    to.unsynced = true;
    for (let at = 0; at < bytes.length; ) at += write(to.handle.fd, bytes, at);
    to.torn = false;
    segments.set(to.number, (segments.get(to.number) ?? 0) + bytes.length);
    for (const { id, line } of batch.lines) lines.add(id, line, to.number);
  };

  const sync = async (): Promise<void> => {
    try {
      lock.touch();
      if (active?.unsynced) {
        active.unsynced = false;
        await active.handle.datasync();
      }
    } catch (error) {
      log?.error('the outbox cannot be synced', { folder, error: String(error) });
    }
    if (!closed) cancelSync = timer(SYNC_EVERY, () => void sync());
  };

  /** Finished records are dropped by carrying the others over; writing goes on in the next segment meanwhile. */
  const cutWhenDue = (): void => {
    const dead = [...segments.values()].reduce((sum, bytes) => sum + bytes, 0) - lines.bytes();
    const due = (dead > patience && dead > lines.bytes()) || segments.size > MOST_SEGMENTS;
    if (!due || !recovered || closed || carrying !== undefined || active === undefined) return;
    const last = active;
    active = undefined;
    nextNumber = last.number + 2;
    carrying = carryOver(last)
      .then(
        () => {
          patience = slack;
        },
        (error) => {
          patience = dead + slack;
          log?.warn('finished records could not be cut from the outbox', { folder, error: String(error) });
        },
      )
      .finally(() => {
        carrying = undefined;
      });
  };

  const carryOver = async (last: Active): Promise<void> => {
    const target = last.number + 1;
    const text = lines.upTo(last.number);
    if (text !== '') await writeSegment(folder, target, text);
    lines.move(last.number, target);
    await last.handle.close();
    const old = [...segments.keys()].filter((number) => number <= last.number);
    await removeSegments(folder, old);
    for (const number of old) segments.delete(number);
    if (text !== '') segments.set(target, Buffer.byteLength(text));
  };

  return {
    append(record) {
      if (closed) return Promise.reject(new Error(`the outbox in ${folder} is closed`));
      const line = toLine(record);
      waiting ??= { lines: [], written: Promise.withResolvers<void>() };
      waiting.lines.push({ id: idOf(record), line });
      draining ??= new Promise((tick) => setImmediate(tick)).then(drain);
      return waiting.written.promise;
    },

    async recover() {
      const records: OutboxRecord[] = [];
      for (const number of await earlier) {
        const content = await readSegment(folder, number);
        segments.set(number, content.bytes);
        if (content.damaged > 0) log?.error('the outbox has damaged lines', { folder, number, lines: content.damaged });
        for (const { line, record } of content.lines) {
          lines.add(idOf(record), line, number);
          records.push(record);
        }
      }
      recovered = true;
      return records;
    },

    done(ids) {
      for (const id of ids) lines.done(id);
    },

    async close() {
      if (closed) return;
      closed = true;
      cancelSync();
      await draining;
      await carrying;
      await active?.handle.datasync();
      await active?.handle.close();
      if (recovered && lines.isEmpty()) await removeSegments(folder, [...segments.keys()]);
      lock.release();
    },
  };
}

const unrefTimer: Timer = (millis, callback) => {
  const timeout = setTimeout(callback, millis);
  timeout.unref();
  return () => clearTimeout(timeout);
};

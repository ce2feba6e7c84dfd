// Promises of all archives, in a folder or in a bucket.
import { describe, expect, test } from 'vitest';
import type { Archive } from '../archive.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const signal = new AbortController().signal;

/** A Buffer is a Uint8Array, but not equal to one. */
const readFrom = async (archive: Archive, path: string): Promise<string | undefined> => {
  const bytes = await archive.read(path, signal);
  return bytes && new TextDecoder().decode(bytes);
};

/** `open` opens the archive of a new process at the same place. */
export function describeArchive(name: string, open: () => Archive): void {
  describe(`the archive in ${name}`, () => {
    test('a file that was written is read back whole, also by another process', async () => {
      const large = new Uint8Array(3_000_000).map((_, place) => place % 251);
      await open().write('a/day=2026-01-31/large.parquet', large, signal);
      const read = await open().read('a/day=2026-01-31/large.parquet', signal);
      expect(read?.length).toBe(large.length);
      expect(read?.every((byte, place) => byte === large[place])).toBe(true);
    });

    test('a file replaces the one with its path, and no other', async () => {
      const archive = open();
      await archive.write('b/day=2026-01-31/1.parquet', bytesOf('one'), signal);
      await archive.write('b/day=2026-01-31/2.parquet', bytesOf('two'), signal);
      await archive.write('b/day=2026-01-31/1.parquet', bytesOf('three'), signal);
      expect(await readFrom(archive, 'b/day=2026-01-31/1.parquet')).toBe('three');
      expect(await readFrom(archive, 'b/day=2026-01-31/2.parquet')).toBe('two');
    });

    test('a file that is not there is undefined', async () => {
      expect(await open().read('c/day=2026-01-31/1.parquet', signal)).toBeUndefined();
    });

    test('an aborted call rejects, and the file stays as it was', async () => {
      const archive = open();
      await archive.write('d/day=2026-01-31/1.parquet', bytesOf('one'), signal);
      const aborted = AbortSignal.abort(new Error('the time is over'));
      await expect(archive.write('d/day=2026-01-31/1.parquet', bytesOf('two'), aborted)).rejects.toThrow();
      await expect(archive.read('d/day=2026-01-31/1.parquet', aborted)).rejects.toThrow();
      expect(await readFrom(archive, 'd/day=2026-01-31/1.parquet')).toBe('one');
    });
  });
}

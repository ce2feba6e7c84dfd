// Readers of streams that read each event.
import { UpstreamError } from '#core/ports/upstream.ts';
import type { Piece, StreamReader } from '../codec.ts';
import { type ResizePending, SseSplitter } from './sse.ts';

const NO_PIECES: ReadonlyArray<Piece> = [];

/**
 * Reads whole events, whatever the packets. `last`: the pieces that the provider forgot at the end of a reply whose
 * answer has ended. Without the last event, some clients repeat the request for ever.
 */
export function createEventReader(
  resizePending: ResizePending | undefined,
  read: (event: Uint8Array) => Piece | ReadonlyArray<Piece>,
  last = () => NO_PIECES,
): StreamReader {
  const splitter = new SseSplitter(resizePending);
  return {
    push: (bytes) => splitter.push(bytes).flatMap(readSafely),
    end: () => [...splitter.end().flatMap(readSafely), ...last()],
  };

  function readSafely(event: Uint8Array): Piece | ReadonlyArray<Piece> {
    try {
      return read(event);
    } catch (cause) {
      // An event that JSON.parse can read, but recursion and JSON.stringify cannot follow.
      if (!(cause instanceof RangeError)) throw cause;
      throw new UpstreamError('broken', 'an event of the upstream is nested too deeply', { cause });
    }
  }
}

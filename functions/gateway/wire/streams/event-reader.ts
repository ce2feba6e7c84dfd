// Readers of streams that read each event.
import { UpstreamError } from '#core/ports/serving.ts';
import type { Piece, StreamReader } from '../codec.ts';
import { type ResizePending, SseSplitter } from './sse.ts';

const NO_PIECES: ReadonlyArray<Piece> = [];

/**
 * Reads whole events, whatever the packets. `last`: what is missing at the end of a reply whose answer has ended, also
 * when its last event did not come: without that event some clients ask for the reply again and again.
 */
export function createEventReader(
  keepPending: ResizePending | undefined,
  read: (event: Uint8Array) => Piece | ReadonlyArray<Piece>,
  last = () => NO_PIECES,
): StreamReader {
  const splitter = new SseSplitter(keepPending);
  return {
    push: (bytes) => splitter.push(bytes).flatMap(readSafely),
    end: () => [...splitter.end().flatMap(readSafely), ...last()],
  };

  function readSafely(event: Uint8Array): Piece | ReadonlyArray<Piece> {
    try {
      return read(event);
    } catch (cause) {
      // JSON.parse reads deeper nesting than recursion and JSON.stringify can follow.
      if (!(cause instanceof RangeError)) throw cause;
      throw new UpstreamError('broken', 'an event of the upstream is nested too deeply', { cause });
    }
  }
}

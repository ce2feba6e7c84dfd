// How is a streamed chat completion read? Event by event, but for those that are like one before: they pass without a parser.
import { NOTHING, type Piece, type StreamReader } from './dialect.ts';
import { likeness, type Shape, shapeOf } from './event-shape.ts';
import { toPiece } from './openai-chunk.ts';
import { createSplitter } from './sse.ts';

/** A shape, and the answer that events of it go on with. */
interface Known {
  readonly shape: Shape;
  readonly choices: Piece['choices'];
}

/** Answers, reasoning, tool calls: what a stream says at a time has few shapes. */
const MOST_SHAPES = 4;
/** So many shapes that no event was like, one after another: the events of this stream have nothing in common. */
const MOST_MISSES = 8;
const LONGEST_SHAPE = 16 * 1024;

export function createReader(): StreamReader {
  const splitter = createSplitter();
  /** The one that was met last comes first. */
  let shapes: ReadonlyArray<Known> = [];
  let misses = 0;

  return {
    push: (bytes) => {
      const pieces: Piece[] = [];
      for (let at = 0; at < bytes.length; ) {
        const like = splitter.isBetween ? alike(bytes, at) : undefined;
        if (like !== undefined) {
          pieces.push(like);
          at += like.bytes.length;
          continue;
        }
        const event = splitter.next(bytes, at);
        if (event === undefined) break;
        pieces.push(read(event));
        at = splitter.at;
      }
      return pieces;
    },
    end: () => splitter.end().map(read),
  };

  function read(event: Uint8Array): Piece {
    // One that came in two packets could not be known before.
    const like = alike(event, 0);
    if (like?.bytes.length === event.length) return like;
    const piece = toPiece(event);
    learn(event, piece);
    return piece;
  }

  /** As many events as follow each other here and are of one known shape. */
  function alike(bytes: Uint8Array, from: number): Piece | undefined {
    for (const known of shapes) {
      let next = likeness(known.shape, bytes, from);
      if (next === undefined) continue;
      if (known !== shapes[0]) shapes = [known, ...shapes.filter((other) => other !== known)];
      misses = 0;
      let [end, deltas, bytesSaid] = [from, 0, 0];
      for (; next !== undefined; next = likeness(known.shape, bytes, end)) {
        end = next.end;
        bytesSaid += next.bytesSaid;
        if (next.bytesSaid > 0) deltas += 1;
      }
      const run = from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end);
      return { ...NOTHING, bytes: run, events: () => eventsOf(run), deltas, bytesSaid, choices: known.choices };
    }
    return undefined;
  }

  /** Events that go on with one answer are remembered: what counts or fails is always read. */
  function learn(event: Uint8Array, { choices, usage, error, bytesSaid }: Piece): void {
    const ordinary = choices.length === 1 && usage === undefined && error === undefined;
    if (!ordinary || misses === MOST_MISSES || event.length > LONGEST_SHAPE) return;
    misses += 1;
    const shape = shapeOf(event, bytesSaid);
    if (shape !== undefined) shapes = [{ shape, choices }, ...shapes.slice(0, MOST_SHAPES - 1)];
  }
}

function eventsOf(run: Uint8Array): ReadonlyArray<Piece> {
  return createSplitter().push(run).map(toPiece);
}

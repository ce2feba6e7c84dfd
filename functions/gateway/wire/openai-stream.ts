// How is a streamed chat completion read? Event by event, but for those that are like one before: they pass without a parser.
import type { CreateReader, Piece, StreamReader } from './dialect.ts';
import { runOf, type Shape, shapeOf } from './event-shape.ts';
import { toPiece } from './openai-chunk.ts';
import { createSplitter } from './sse.ts';

/** A shape, and the answer that events of it go on with. */
interface Known {
  readonly shape: Shape;
  readonly choices: Piece['choices'];
}

/** What streams of one provider have shown each other. */
interface Memory {
  known: ReadonlyArray<Known>;
}

/** Answers, reasoning, tool calls: what a stream says at a time has few shapes. */
const MOST_SHAPES = 6;
/** So many shapes that no event was like, one after another: the events of this stream have nothing in common. */
const MOST_MISSES = 8;
const LONGEST_SHAPE = 16 * 1024;

/** Readers of one provider's streams: what is the same in all of them is learnt once. */
export function createReaders(): CreateReader {
  const memory: Memory = { known: [] };
  return () => createReader(memory);
}

function createReader(memory: Memory): StreamReader {
  const splitter = createSplitter();
  /** What only this stream has shown. */
  let own: ReadonlyArray<Known> = [];
  /** Of the shape that was met last the next event is, most likely. */
  let last: Known | undefined;
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
    return (last && likeOf(last, bytes, from)) ?? likeAny(own, bytes, from) ?? likeAny(memory.known, bytes, from);
  }

  function likeAny(those: ReadonlyArray<Known>, bytes: Uint8Array, from: number): Piece | undefined {
    for (const known of those) {
      const like = known === last ? undefined : likeOf(known, bytes, from);
      if (like !== undefined) return like;
    }
    return undefined;
  }

  function likeOf(known: Known, bytes: Uint8Array, from: number): Piece | undefined {
    const run = runOf(known.shape, bytes, from);
    if (run === undefined) return undefined;
    last = known;
    misses = 0;
    return toRun(from === 0 && run.end === bytes.length ? bytes : bytes.subarray(from, run.end), known, run);
  }

  /** Events that go on with one answer are remembered: what counts, fails or ends is always read. */
  function learn(event: Uint8Array, { choices, usage, error, bytesSaid, sound }: Piece): void {
    const goesOn = choices.length === 1 && choices[0]?.finished === false;
    if (!goesOn || usage !== undefined || error !== undefined || sound > 0) return;
    if (misses === MOST_MISSES || event.length > LONGEST_SHAPE) return;
    misses += 1;
    const shape = shapeOf(event, bytesSaid);
    if (shape === undefined) return;
    last = { shape, choices };
    if (shape.isBare) memory.known = [last, ...memory.known.slice(0, MOST_SHAPES - 1)];
    else own = [last, ...own.slice(0, MOST_SHAPES - 1)];
  }
}

function toRun(
  bytes: Uint8Array,
  { choices }: Known,
  { deltas, bytesSaid }: { readonly deltas: number; readonly bytesSaid: number },
): Piece {
  const events = () => createSplitter().push(bytes).map(toPiece);
  return {
    bytes,
    events,
    done: false,
    deltas,
    bytesSaid,
    sound: 0,
    usage: undefined,
    prompt: undefined,
    usageOnly: false,
    choices,
    frame: () => events()[0]?.frame?.() ?? {},
    error: undefined,
  };
}

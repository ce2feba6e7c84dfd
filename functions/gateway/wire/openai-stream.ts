// How is a streamed chat completion read? Event by event, but for those that are like one before: they pass without a parser.
import { type CreateReader, NOTHING, type Piece, type StreamReader } from './dialect.ts';
import { runOf, type Shape, shapeOf } from './event-shape.ts';
import { toPiece } from './openai-chunk.ts';
import { behind, type Packet, toFixed, toPacket } from './same-bytes.ts';
import { createSplitter, toEvent } from './sse.ts';

/** A shape, and the answer that events of it go on with, or end. */
interface Known {
  readonly shape: Shape;
  readonly choices: Piece['choices'];
}

/** What streams of one provider have shown each other. */
interface Memory {
  known: ReadonlyArray<Known>;
}

/** Answers, reasoning, tool calls, their ends: what a stream says at a time has few shapes. */
const MOST_SHAPES = 8;
/** So many shapes that no event was like, one after another: the events of this stream have nothing in common. */
const MOST_MISSES = 8;
const LONGEST_SHAPE = 16 * 1024;
/** As nearly all write it. */
const DONE = toFixed(toEvent('[DONE]'));

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
      const packet = toPacket(bytes);
      for (let at = 0; at < bytes.length; ) {
        const { isBetween } = splitter;
        const like = isBetween ? alike(packet, at) : undefined;
        if (like !== undefined) {
          pieces.push(like);
          at += like.bytes.length;
          continue;
        }
        const event = splitter.next(bytes, at);
        if (event === undefined) break;
        pieces.push(isBetween ? parse(event) : read(event));
        at = splitter.at;
      }
      return pieces;
    },
    end: () => splitter.end().map(read),
  };

  /** One that came in two packets could not be known before. */
  function read(event: Uint8Array): Piece {
    const like = alike(toPacket(event), 0);
    return like?.bytes.length === event.length ? like : parse(event);
  }

  function parse(event: Uint8Array): Piece {
    const piece = toPiece(event);
    learn(event, piece);
    return piece;
  }

  /** As many events as follow each other here and are of one known shape. */
  function alike(packet: Packet, from: number): Piece | undefined {
    return (
      (last && likeOf(last, packet, from)) ??
      likeDone(packet, from) ??
      likeAny(own, packet, from) ??
      likeAny(memory.known, packet, from)
    );
  }

  function likeAny(those: ReadonlyArray<Known>, packet: Packet, from: number): Piece | undefined {
    for (const known of those) {
      const like = known === last ? undefined : likeOf(known, packet, from);
      if (like !== undefined) return like;
    }
    return undefined;
  }

  function likeOf(known: Known, packet: Packet, from: number): Piece | undefined {
    const { bytes } = packet;
    const run = runOf(known.shape, packet, from);
    if (run === undefined) return undefined;
    last = known;
    misses = 0;
    return toRun(from === 0 && run.end === bytes.length ? bytes : bytes.subarray(from, run.end), known, run);
  }

  /** Events that go on with one answer, or end it, are remembered: what counts or fails is always read. */
  function learn(event: Uint8Array, { choices, usage, error, bytesSaid, sound }: Piece): void {
    if (choices.length !== 1 || usage !== undefined || error !== undefined || sound > 0) return;
    if (misses === MOST_MISSES || event.length > LONGEST_SHAPE) return;
    misses += 1;
    const shape = shapeOf(event, bytesSaid);
    if (shape === undefined) return;
    last = { shape, choices };
    if (shape.isBare) memory.known = [last, ...memory.known.slice(0, MOST_SHAPES - 1)];
    else own = [last, ...own.slice(0, MOST_SHAPES - 1)];
  }
}

function likeDone(packet: Packet, from: number): Piece | undefined {
  const end = behind(DONE, packet, from);
  return end === -1 ? undefined : { ...NOTHING, bytes: packet.bytes.subarray(from, end), done: true };
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

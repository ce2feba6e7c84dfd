// Pieces of a stream on their way to the client, until the reply ends.
import { LONG_TEXT } from '#core/json/json-limits.ts';
import type { Clock } from '#core/ports/clock.ts';
import { UpstreamError } from '#core/ports/upstream.ts';
import type { ReplyEnd } from '../request/request-log.ts';
import type { FailedPiece, Piece } from '../wire/codec.ts';
import { withoutSecretNames } from '../wire/json/secrets.ts';
import { countLateUsage, type RunningStream } from './running-stream.ts';

/** Passes pieces to the client until the reply ends. Returns the last bytes, which wait for the settlement. */
export async function passPieces(running: RunningStream, clock: Clock): Promise<ReadonlyArray<Uint8Array>> {
  const { exchange, client } = running;
  let passed = passOn(running, exchange.takeFirst(), clock);
  // A first packet without anything for the client: the headers are sent now, because the next packet may take long.
  if (passed === 'nothing') client.flush();
  while (typeof passed === 'string') {
    if (passed === 'full') {
      keepUnreadBytes(running, running.unread);
      await waitForRoom(running);
      // After an end of the stream, its bytes stay counted.
      if (running.end === undefined) running.resizeUnread(0);
    }
    passed = await passNext(running, clock);
  }
  return passed;
}

/**
 * Reads and passes the next packet. No packet is kept while the next one is awaited: one that repeats the whole request
 * may be followed by a long silence.
 */
async function passNext(running: RunningStream, clock: Clock): Promise<StreamProgress> {
  const pieces = running.end === undefined ? await readPieces(running) : undefined;
  if (pieces !== undefined) return passOn(running, pieces, clock);
  // An end without `[DONE]` is a whole reply only if its content had ended.
  running.end ??= running.meter.finished ? 'complete' : 'broken';
  return [];
}

/**
 * Progress of a stream: some pieces were written, or nothing; the connection is full; or the last bytes of a reply that
 * has ended.
 */
type StreamProgress = 'some' | 'nothing' | 'full' | ReadonlyArray<Uint8Array>;

function passOn(running: RunningStream, pieces: ReadonlyArray<Piece>, clock: Clock): StreamProgress {
  const shown: Uint8Array[] = [];
  if (running.end !== undefined) return shown;
  running.end = collectShown(running, pieces, shown);
  if (running.end !== undefined) return shown;
  if (shown.length === 0) return 'nothing';
  const isFull = !running.client.write(shown);
  running.lastWriteAt = clock.now();
  if (isFull) running.unread = lengthOf(shown);
  return isFull ? 'full' : 'some';
}

/**
 * Takes memory for many bytes that the client has not read yet, because an event may repeat the whole request. If there
 * is no memory, the client is disconnected, and counts as one that has left.
 */
export function keepUnreadBytes(running: RunningStream, bytes: number): void {
  const { client } = running;
  if (bytes <= LONG_TEXT || running.resizeUnread(bytes)) return;
  running.end ??= 'client_left';
  client.destroy();
}

export const lengthOf = (pieces: ReadonlyArray<Uint8Array>): number =>
  pieces.reduce((sum, { length }) => sum + length, 0);

function waitForRoom(running: RunningStream): Promise<void> {
  return new Promise((resolve) => {
    running.wake = resolve;
    void running.client.drained().then(resolve);
  });
}

/**
 * The next pieces. Undefined: the upstream has ended or broken off, or there is no memory for its event; then the
 * client counts as one that has left. Throws any error that is our own.
 */
async function readPieces(running: RunningStream): Promise<ReadonlyArray<Piece> | undefined> {
  const { reader, rest } = running.exchange;
  try {
    const chunk = await rest.next();
    if (!chunk.done) return reader.push(chunk.value);
    const lastPieces = reader.end();
    return lastPieces.length === 0 ? undefined : lastPieces;
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    if (error.kind === 'no room') running.end ??= 'client_left';
    return undefined;
  }
}

/** Counts these pieces and collects those that the client sees. Returns how the reply ends; undefined: it continues. */
function collectShown(running: RunningStream, pieces: ReadonlyArray<Piece>, shown: Uint8Array[]): ReplyEnd | undefined {
  const { meter, exchange } = running;
  const { includeUsage } = exchange.reserved.grant.request;
  for (const [at, piece] of pieces.entries()) {
    if (isFailed(piece)) {
      const error = withoutSecretNames(piece.error, exchange.target.endpoint);
      running.failure = error;
      meter.count(piece);
      countLateUsage(meter, pieces.slice(at + 1));
      shown.push(meter.toErrorEvent({ ...piece, error }));
      return 'failed';
    }
    if (meter.exceeds(piece)) {
      const end = piece.readEvents === undefined ? 'cut' : collectShown(running, piece.readEvents(piece.bytes), shown);
      if (end !== undefined) return end;
      continue;
    }
    if (piece.done) {
      countLateUsage(meter, pieces.slice(at + 1));
      shown.push(piece.bytes);
      return 'complete';
    }
    meter.count(piece);
    if (piece.bytes.length > 0 && (!piece.usageOnly || includeUsage)) shown.push(piece.bytes);
  }
  return undefined;
}

function isFailed(piece: Piece): piece is FailedPiece {
  return piece.error !== undefined;
}

// A request as Node's server reads it, with the small pieces of its body joined.
import { IncomingMessage } from 'node:http';
import { LARGE_PIECE, Pieces } from '#core/json/bytes.ts';

/** Pieces of a body from which on their average size counts, and the bytes that it must have then. */
const MANY_PIECES = 4_096;
const MIN_AVERAGE = 128;

/**
 * For the server's options. A client may send each byte of a body in a chunk of its own, which Node makes a buffer of
 * 250 bytes. The handler gets pieces of 4 KiB or more; only the last may be shorter. Each piece is a call of the parser,
 * and 2 MiB of a connection are parsed in one turn of the event loop, so a connection with many tiny pieces is closed.
 */
export class IncomingRequest extends IncomingMessage {
  #small: Pieces | undefined;
  #pieces = 0;
  #bytes = 0;

  /** Takes a piece from the parser; null: the body has ended. */
  override push(piece: Uint8Array | null): boolean {
    if (piece !== null && this.#isTooSmall(piece)) return false;
    if (piece !== null && piece.length >= LARGE_PIECE && this.#small === undefined) return super.push(piece);
    this.#small ??= new Pieces();
    if (piece !== null) this.#small.add(piece);
    if (piece !== null && this.#small.length < LARGE_PIECE) return true;
    const joined = this.#small.take();
    this.#small = undefined;
    const hasRoom = joined.length === 0 || super.push(joined);
    return piece === null ? super.push(null) : hasRoom;
  }

  /** Node discards the rest of a body after its answer. Here `push` still counts the pieces. */
  _dump(): void {
    this.resume();
  }

  #isTooSmall({ length }: Uint8Array): boolean {
    this.#pieces += 1;
    this.#bytes += length;
    if (this.#pieces <= MANY_PIECES || this.#bytes >= this.#pieces * MIN_AVERAGE) return false;
    this.socket.destroy();
    return true;
  }
}

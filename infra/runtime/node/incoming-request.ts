// A request as Node's server reads it, with the small pieces of its body joined.
import { IncomingMessage } from 'node:http';
import { LARGE_PIECE, Pieces } from '#core/json/bytes.ts';

/**
 * For the server's options. A client may send each byte of a body in a chunk of its own, which Node makes a buffer of
 * 250 bytes. The handler gets pieces of 4 KiB or more; only the last may be shorter.
 */
export class IncomingRequest extends IncomingMessage {
  #small: Pieces | undefined;

  /** Takes a piece from the parser; null: the body has ended. */
  override push(piece: Uint8Array | null): boolean {
    if (piece !== null && piece.length >= LARGE_PIECE && this.#small === undefined) return super.push(piece);
    this.#small ??= new Pieces();
    if (piece !== null) this.#small.add(piece);
    if (piece !== null && this.#small.length < LARGE_PIECE) return true;
    const joined = this.#small.take();
    this.#small = undefined;
    const hasRoom = joined.length === 0 || super.push(joined);
    return piece === null ? super.push(null) : hasRoom;
  }
}

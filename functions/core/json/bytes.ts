// Bytes: texts in UTF-8, and joined pieces. Only functions that every platform has are used.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const toUtf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);

/** The text, without a byte order mark at its beginning. Bytes that are no UTF-8 become U+FFFD. */
export const fromUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes);

/** The pieces joined; a single one is not copied. */
export function concat(pieces: ReadonlyArray<Uint8Array>): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The minimum bytes of a piece that is kept without a copy. */
export const LARGE_PIECE = 4 * 1024;
/** The maximum bytes of an array that small pieces are copied into. */
const MAX_BLOCK = 16 * 1024;
const NOTHING = new Uint8Array(0);

/**
 * Bytes that arrive in pieces and are kept until all have arrived. Small pieces are copied together: each array takes
 * some 250 bytes beside its content, and a sender may send each byte alone. A class, because each body has one.
 */
export class Pieces {
  length = 0;
  #kept: Uint8Array[] = [];
  /** The array that small pieces are copied into, and the number of its bytes that are in use. */
  #block = NOTHING;
  #filled = 0;

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    const isFirst = this.length === 0;
    this.length += piece.length;
    if (isFirst || piece.length >= LARGE_PIECE) {
      this.#endBlock();
      this.#kept.push(piece);
      return;
    }
    if (this.#filled + piece.length > this.#block.length) {
      this.#endBlock();
      this.#block = new Uint8Array(Math.max(piece.length, Math.min(this.length, MAX_BLOCK)));
    }
    this.#block.set(piece, this.#filled);
    this.#filled += piece.length;
  }

  /** Returns all pieces joined, and keeps none. A single piece is not copied. */
  take(): Uint8Array {
    this.#endBlock();
    const whole = concat(this.#kept);
    this.length = 0;
    this.#kept = [];
    this.#block = NOTHING;
    return whole;
  }

  /** Keeps the used part of the block. The rest of the block takes later pieces. */
  #endBlock(): void {
    if (this.#filled === 0) return;
    this.#kept.push(this.#block.subarray(0, this.#filled));
    this.#block = this.#block.subarray(this.#filled);
    this.#filled = 0;
  }
}

/** Reads a whole body. Undefined: it has more than `max` bytes, and the rest is not received. */
export async function readBytes(body: ReadableStream<Uint8Array> | null, max: number): Promise<Uint8Array | undefined> {
  const reader = body?.getReader();
  const pieces = new Pieces();
  for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) {
    if (pieces.length + piece.value.length > max) {
      await reader?.cancel().catch(() => undefined);
      return undefined;
    }
    pieces.add(piece.value);
  }
  return pieces.take();
}

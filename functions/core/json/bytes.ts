// Pieces of bytes, joined by what every platform has.

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

// Do the same bytes stand here? Read four at a time: byte by byte, a stream's events take three times as long.

/** Bytes that are looked at in many places, and a view of the same. */
export interface Packet {
  readonly bytes: Uint8Array;
  readonly view: DataView;
}

/** Bytes that are looked for. */
export interface Fixed {
  readonly length: number;
  /** Four each, as far as they go. */
  readonly words: Uint32Array;
  readonly rest: Uint8Array;
}

export function toPacket(bytes: Uint8Array): Packet {
  return { bytes, view: viewOf(bytes) };
}

/** Of a copy, so that it keeps nothing else in memory. */
export function toFixed(bytes: Uint8Array): Fixed {
  const view = viewOf(bytes);
  const words = Uint32Array.from({ length: bytes.length >> 2 }, (_, at) => view.getUint32(at * 4, true));
  return { length: bytes.length, words, rest: bytes.slice(words.length * 4) };
}

/** Where these end, if they begin here; -1 where others do. */
export function behind({ length, words, rest }: Fixed, { bytes, view }: Packet, from: number): number {
  if (from + length > bytes.length) return -1;
  let at = from;
  for (let word = 0; word < words.length; word += 1, at += 4) if (words[word] !== view.getUint32(at, true)) return -1;
  for (let byte = 0; byte < rest.length; byte += 1, at += 1) if (rest[byte] !== bytes[at]) return -1;
  return at;
}

/** Whether as many bytes are the same in these two places of a packet, of which the second is the later one. */
export function repeats({ bytes, view }: Packet, first: number, second: number, length: number): boolean {
  if (second + length > bytes.length) return false;
  let at = 0;
  for (; at + 4 <= length; at += 4) {
    if (view.getUint32(first + at, true) !== view.getUint32(second + at, true)) return false;
  }
  for (; at < length; at += 1) if (bytes[first + at] !== bytes[second + at]) return false;
  return true;
}

function viewOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, length);
}

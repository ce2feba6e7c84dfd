// What is a stream written to? Pieces of packets go on as they stood there, in as few as can be.
import { concat } from './members.ts';

/** What the client hears. */
export interface Output {
  /** False: it should not get more until it has room. */
  write(pieces: ReadonlyArray<Uint8Array>): boolean;
  end(pieces: ReadonlyArray<Uint8Array>): void;
}

/** What stood side by side in a packet is shown as it came. */
export function add(shown: Uint8Array[], bytes: Uint8Array): void {
  const last = shown.at(-1);
  const isNext = last?.buffer === bytes.buffer && last.byteOffset + last.length === bytes.byteOffset;
  if (last === undefined || !isNext) shown.push(bytes);
  else shown[shown.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + bytes.length);
}

/** A web stream, which asks for more when it has room. */
export function toOutput(controller: ReadableStreamDefaultController<Uint8Array>): Output {
  const write = (pieces: ReadonlyArray<Uint8Array>) => {
    const bytes = concat(pieces);
    if (bytes.length > 0) controller.enqueue(bytes);
    // It asks when it has.
    return true;
  };
  return {
    write,
    end: (pieces) => {
      write(pieces);
      controller.close();
    },
  };
}

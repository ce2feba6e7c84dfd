// Framing of HTTP/1.1 messages, for a load generator and an upstream of minimal cost.

const EMPTY: Buffer = Buffer.alloc(0);
/** Bytes at the start of a body that its reader gets in any case. */
const START = 256;

/**
 * Splits bytes as they arrive; calls back with each whole message: the head and the body, or the start of a long body,
 * which is not kept.
 */
export function createSplitter(onMessage: (head: string, body: Buffer) => void): (chunk: Buffer) => void {
  let rest = EMPTY;
  let long: { readonly head: string; readonly start: Buffer; missing: number } | undefined;
  return (chunk) => {
    if (long === undefined) rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    else if (chunk.length < long.missing) {
      long.missing -= chunk.length;
      return;
    } else {
      rest = chunk.subarray(long.missing);
      const { head, start } = long;
      long = undefined;
      onMessage(head, start);
    }
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = rest.toString('latin1', 0, end + 2);
      const body = rest.subarray(end + 4);
      const length = lengthOf(head, body);
      if (length === undefined) return;
      if (length <= body.length) {
        onMessage(head, body.subarray(0, length));
        rest = body.subarray(length);
      } else {
        if (body.length >= START) {
          long = { head, start: body, missing: length - body.length };
          rest = EMPTY;
        }
        return;
      }
    }
  };
}

/** The length of the body, which may not have arrived yet; undefined while it is unknown. */
function lengthOf(head: string, body: Buffer): number | undefined {
  const length = /\r\ncontent-length: *([0-9]+)\r\n/i.exec(head)?.[1];
  if (length !== undefined) return Number(length);
  if (!/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) return 0;
  // Bodies here never contain these bytes.
  const last = body.indexOf('0\r\n\r\n', Math.max(0, body.length - 7));
  return last === -1 ? undefined : last + 5;
}

// Framing of HTTP/1.1 messages, for a load generator and an upstream of minimal cost.

/** Splits bytes as they arrive; calls back with each whole message, head and body. Returns the rest. */
export function createSplitter(onMessage: (head: string, body: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const end = rest.indexOf('\r\n\r\n');
      if (end === -1) return;
      const head = rest.toString('latin1', 0, end + 2);
      const until = bodyEnd(head, end + 4);
      if (until === undefined) return;
      onMessage(head, rest.subarray(end + 4, until));
      rest = rest.subarray(until);
    }
  };

  /** The end of the message; undefined while it is incomplete. */
  function bodyEnd(head: string, start: number): number | undefined {
    const length = /\r\ncontent-length: *([0-9]+)\r\n/i.exec(head)?.[1];
    if (length !== undefined) {
      const until = start + Number(length);
      return until <= rest.length ? until : undefined;
    }
    if (!/\r\ntransfer-encoding: *chunked\r\n/i.test(head)) return start;
    // Bodies here never contain these bytes.
    const last = rest.indexOf('0\r\n\r\n', Math.max(start, rest.length - 7));
    return last === -1 ? undefined : last + 5;
  }
}

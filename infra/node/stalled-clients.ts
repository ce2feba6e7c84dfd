// How long may a client take nothing of its reply? A minute; longer, and it would keep connection and reply for as long as it likes.
import type { Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';

/** Milliseconds without a byte taken. */
const MAX_STALL = 60_000;

/**
 * Closes connections whose client has taken no byte of what waits for it for so long, and at most twice as long; that it has left
 * is told to whoever answers. A client that waits for its answer may wait, and one that reads slowly may be slow: as far as the
 * system tells, which lets the socket's buffer run down by a third before it takes more. (Over TLS it tells less; there we answer
 * nobody at length.)
 */
export function cutStalled(server: Server | TlsServer, after = MAX_STALL): void {
  // Each read and write begins this anew, and so does a write of which only a part was taken since.
  server.timeout = after;
  server.prependListener('request', (_, outgoing) => void outgoing.on('timeout', onSilence));
}

/** That somebody listens keeps Node from closing a connection on which nobody has anything to say. */
function onSilence(this: ServerResponse): void {
  if (this.writableLength > 0) this.destroy();
}

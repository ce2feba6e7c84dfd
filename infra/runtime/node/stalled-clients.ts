// Stalled clients: a connection whose client takes nothing of its reply for a minute is closed. Otherwise it could stay
// open forever.
import type { Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';

/** Milliseconds without a byte taken. */
const MAX_STALL = 60_000;

/**
 * Closes connections whose client has taken no byte of a waiting reply for `after` milliseconds, at most twice as many;
 * the handler sees that the client has left. A client that waits for its reply may wait, and a slow reader may be slow,
 * as far as the system shows: the socket's buffer runs down by a third before it takes more. (Over TLS the system shows
 * less, but those replies are short.)
 */
export function cutStalled(server: Server | TlsServer, after = MAX_STALL): void {
  // The timeout begins anew at each read and write, and when part of a waiting write was taken.
  server.timeout = after;
  server.prependListener('request', (_, outgoing) => void outgoing.on('timeout', onSilence));
}

/** This listener keeps Node from closing a connection that only waits for its reply. */
function onSilence(this: ServerResponse): void {
  if (this.writableLength > 0) this.destroy();
}

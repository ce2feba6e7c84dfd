// A provider with minimal cost: a fixed completion, plain or streamed, with usage. It counts the requests it has
// answered.
import { createServer, type Socket } from 'node:net';
import { createSplitter } from './messages.ts';
import { kindOf, PACE, REPLIES } from './replies.ts';

export interface UpstreamReport {
  readonly requests: number;
}

let requests = 0;
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  const split = createSplitter((_, body) => {
    requests += 1;
    const { isPaced, packets } = REPLIES[kindOf(body)];
    if (packets.length === 1) socket.write(packets[0] ?? '');
    else if (isPaced) pace(socket, packets);
    else void stream(socket, packets);
  });
  socket.on('data', split);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
process.on('message', () => process.send?.({ requests } satisfies UpstreamReport));
process.on('disconnect', () => process.exit(0));

/** Sends several writes without pauses: the first word, the words, the end. */
async function stream(socket: Socket, packets: ReadonlyArray<string>): Promise<void> {
  socket.write(packets.slice(0, 2).join(''));
  for (let at = 2; at < packets.length; at += 5) {
    await new Promise(setImmediate);
    socket.write(packets.slice(at, at + 5).join(''));
  }
}

/** Sends each event in its own packet, at the pace of a model; streams start at different times and stay apart. */
function pace(socket: Socket, packets: ReadonlyArray<string>): void {
  let at = 2;
  socket.write(packets.slice(0, at).join(''));
  const timer = setInterval(() => {
    socket.write(packets[at] ?? '');
    at += 1;
    if (at >= packets.length || socket.destroyed) clearInterval(timer);
  }, PACE);
}

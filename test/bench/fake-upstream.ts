// A provider with minimal cost: a fixed completion, plain or streamed, with usage. It counts the usage it has reported.
import { createServer, type Socket } from 'node:net';
import { createSplitter } from './messages.ts';
import { PACE, PACKETS, STREAM_HEAD, WHOLE } from './replies.ts';

export interface Reported {
  readonly requests: number;
}

let requests = 0;
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  const split = createSplitter((_, body) => {
    requests += 1;
    if (!body.includes('"stream":true')) socket.write(WHOLE);
    else if (body.includes('"user":"paced"')) pace(socket);
    else void stream(socket);
  });
  socket.on('data', split);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
process.on('message', () => process.send?.({ requests } satisfies Reported));
process.on('disconnect', () => process.exit(0));

/** Sends several writes without pauses: the first word, the words, the end. */
async function stream(socket: Socket): Promise<void> {
  const { streamed } = PACKETS;
  socket.write(STREAM_HEAD + streamed[0]);
  for (let at = 1; at < streamed.length; at += 5) {
    await new Promise(setImmediate);
    socket.write(streamed.slice(at, at + 5).join(''));
  }
}

/** Sends each event in its own packet, at the pace of a model; streams start at different times and stay apart. */
function pace(socket: Socket): void {
  const { paced } = PACKETS;
  let at = 1;
  socket.write(STREAM_HEAD + paced[0]);
  const timer = setInterval(() => {
    socket.write(paced[at] ?? '');
    at += 1;
    if (at >= paced.length || socket.destroyed) clearInterval(timer);
  }, PACE);
}

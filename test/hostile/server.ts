// A server on loopback that answers as its owner wants.

import type { AddressInfo } from 'node:net';
import { createServer, type ServerOpts, type Socket } from 'node:net';

export interface HostileServer {
  readonly port: number;
  /** Connections so far. */
  connections(): number;
  /** Connections now. */
  open(): number;
  /** Bytes that it could send so far. */
  sent(): number;
  stop(): Promise<void>;
}

/** `serve` gets each connection. Its socket errors are no failure of the test: the other side may leave at any time. */
export async function listen(serve: (socket: Socket) => void, options: ServerOpts = {}): Promise<HostileServer> {
  const sockets = new Set<Socket>();
  let [before, connections] = [0, 0];
  const server = createServer(options, (socket) => {
    sockets.add(socket);
    connections += 1;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      before += socket.bytesWritten;
    });
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => sockets.size,
    sent: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, before),
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

/** Sends the same bytes for ever, as fast as they are taken. */
export function pour(socket: Socket, bytes: Uint8Array): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(bytes));
  };
  socket.on('drain', more);
  more();
}

/** Sends the same bytes once a second, for ever. */
export function drip(socket: Socket, bytes: Uint8Array): void {
  const timer = setInterval(() => socket.write(bytes), 1000);
  socket.on('close', () => clearInterval(timer));
}

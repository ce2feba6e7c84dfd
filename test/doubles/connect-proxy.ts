// A proxy that opens tunnels (CONNECT), as those of companies do.
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ConnectProxy {
  readonly url: string;
  /** The targets of all CONNECT requests, like `127.0.0.1:443`, with the proxy's credentials before an `@`. */
  readonly asked: ReadonlyArray<string>;
  close(): Promise<void>;
}

/**
 * `answer`: the status of each CONNECT request; `never`: the proxy does not answer. Every name leads to the loopback, as
 * if only the proxy could find it.
 */
export async function startConnectProxy(answer: number | 'never' = 200): Promise<ConnectProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((_, response) => void response.writeHead(405).end());
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    const [, credentials] = /^Basic (.*)$/.exec(headers['proxy-authorization'] ?? '') ?? [];
    asked.push(credentials === undefined ? url : `${Buffer.from(credentials, 'base64')}@${url}`);
    if (answer === 'never') return;
    if (answer !== 200) return void client.end(`HTTP/1.1 ${answer} Refused\r\ncontent-length: 0\r\n\r\n`);
    const target = connect(Number(new URL(`http://${url}`).port || 80), '127.0.0.1');
    sockets.add(target);
    let isOpen = false;
    target.on('connect', () => {
      isOpen = client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    });
    // A target that cannot be reached is a 502 of the proxy.
    target.on('error', () => {
      if (isOpen) client.destroy();
      else client.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n');
    });
    client.on('close', () => target.destroy());
    target.on('close', () => client.destroy());
    client.pipe(target).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

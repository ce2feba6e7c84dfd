// Connections from here to there, byte for byte: `node forward.ts FROM TO [CERT KEY]`, each an address `HOST:PORT` or
// the path of a Unix socket. With the files of a certificate TLS ends here.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

const at = (address: string) => {
  if (address.startsWith('/')) return { path: address };
  const [host = '', port] = address.split(':');
  return { host, port: Number(port) };
};

interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Listens; a connection that fails or breaks on one side breaks on the other. */
export async function forward(from: string, to: string, tls?: Tls): Promise<Server> {
  const pass = (client: Socket) => {
    const target = connect({ ...at(to), allowHalfOpen: true });
    client.pipe(target).pipe(client);
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  };
  const options = { allowHalfOpen: true };
  const server = tls === undefined ? createServer(options, pass) : createTlsServer({ ...options, ...tls }, pass);
  await once(server.listen(at(from)), 'listening');
  return server;
}

if (import.meta.main) {
  const [from = '', to = '', cert, key] = process.argv.slice(2);
  const tls = cert && key ? { cert: readFileSync(cert), key: readFileSync(key) } : undefined;
  await forward(from, to, tls);
  process.stdout.write('forwarding\n');
}

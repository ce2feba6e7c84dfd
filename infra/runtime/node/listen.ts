// The address that a server of Node listens on.
import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions as NodeListenOptions, Server } from 'node:net';

export interface ListenOptions {
  /** 0: any free port. */
  readonly port: number;
  /** `::` is every address: of IPv6 and IPv4, or of IPv4 alone if the machine has no IPv6. */
  readonly host: string;
  /**
   * Sockets that listen on the port. Node takes one connection from each for each turn of its event loop. More than one
   * needs `SO_REUSEPORT`, so Linux. Default: 1.
   */
  readonly listeners?: number | undefined;
}

/**
 * Listens. Returns the address as `HOST:PORT`, and the actual port. Rejects with Node's error (`code: 'EADDRINUSE'` for
 * a port in use).
 */
export async function listen(server: Server, { port, host, listeners = 1 }: ListenOptions) {
  // A socket that shares its port would also share it with another process. The first socket does not share, so that a
  // port in use is detected.
  const first = listeners === 1 ? server : createServer();
  const { address, port: taken } = await bind(first, host, { port });
  const all = [server];
  if (first !== server) {
    first.close();
    const toServer = () => createServer(ACCEPTED, (socket) => server.emit('connection', socket));
    all.push(...Array.from({ length: listeners - 1 }, toServer));
    for (const each of all) await bind(each, host, { port: taken, reusePort: true });
  }
  return {
    at: `${address.includes(':') ? `[${address}]` : address}:${taken}`,
    port: taken,
    /**
     * Takes no new connections; resolves when the last one has ended. The HTTP server's own `close` would close idle
     * ones.
     */
    stop: () => Promise.all(all.map((each) => new Promise((resolve) => Server.prototype.close.call(each, resolve)))),
  };
}

/** The methods of an HTTP server that are needed here. */
const ACCEPTED = { allowHalfOpen: true, noDelay: true };

async function bind(server: Server, host: string, options: NodeListenOptions): Promise<AddressInfo> {
  // Without a host Node itself falls back from `::` to 0.0.0.0.
  await once(server.listen(host === '::' ? options : { ...options, host }), 'listening');
  // A server on a port has no other kind of address.
  return server.address() as AddressInfo;
}

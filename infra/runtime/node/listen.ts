// The address that a server of Node listens on.
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

export interface ListenOptions {
  /** 0: any free port. */
  readonly port: number;
  /** `::` is every address: of IPv6 and IPv4, or of IPv4 alone where the machine has no IPv6. */
  readonly host: string;
}

/**
 * Answers the address as `HOST:PORT`, and the port that was really taken. Rejects with Node's own error (`code:
 * 'EADDRINUSE'` for a taken port).
 */
export async function listen(server: Server, { port, host }: ListenOptions) {
  // Without a host Node itself falls back from `::` to 0.0.0.0.
  await once(host === '::' ? server.listen(port) : server.listen(port, host), 'listening');
  // A server on a port has no other kind of address.
  const { address, port: taken } = server.address() as AddressInfo;
  return { at: `${address.includes(':') ? `[${address}]` : address}:${taken}`, port: taken };
}

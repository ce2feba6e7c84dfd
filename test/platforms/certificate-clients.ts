// Who would notice a certificate that is not trusted? An API server that asks on, one that has just started, and one
// connection that is kept.
import { Agent, request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { eventually } from '../support/eventually.ts';

export interface ServedCertificate {
  /** Has the API server ask about a key of this name; its answer. */
  readonly ask: (name: string) => Promise<string>;
  readonly url: string;
  /** What its certificate is good for. */
  readonly host: string;
  /** PEM: what each webhook configuration says is to be trusted now. */
  readonly trusted: () => Promise<ReadonlyArray<string>>;
}

/** That they wait for a busy machine is not what they are there for. */
const DEADLINE = 60_000;

/** They never stop until they are told to; what failed is told then. */
export function startClients({ ask, url, host, trusted }: ServedCertificate) {
  let isOver = false;
  const failures: string[] = [];
  const count = { calls: 0, handshakes: 0 };
  const certificates = new Set<string>();
  const kept = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const sockets = new Set<unknown>();

  /** The API server keeps its connections: it asks, and asks again. */
  const apiServer = async (serial: number) => {
    const reply = await ask(`chat-${serial}`);
    count.calls += 1;
    if (!reply.includes('denied the request')) failures.push(reply);
  };
  /** An API server that has just started trusts what the configurations say, and shakes hands anew. */
  const newcomer = async () => {
    const reply = await Promise.all(
      (await trusted()).map((ca) => get(new Agent({ ca, servername: host, keepAlive: false }))),
    );
    count.handshakes += reply.length;
    for (const { certificate } of reply) certificates.add(certificate);
  };
  const keeper = async () => {
    const { socket } = await get(kept);
    sockets.add(socket);
  };
  const get = (agent: Agent) =>
    new Promise<{ socket: unknown; certificate: string }>((resolve, reject) => {
      const sent = request(`${url}/healthz`, { agent, servername: host }, (reply) => {
        const { socket } = reply;
        const certificate =
          'getPeerX509Certificate' in socket
            ? String((socket as TLSSocket).getPeerX509Certificate()?.serialNumber)
            : '';
        reply.resume().on('end', () => resolve({ socket, certificate }));
      });
      sent.on('error', reject);
      sent.end();
    });

  const loop = async (every: number, work: (serial: number) => Promise<unknown>) => {
    for (let serial = 0; !isOver; serial += 1) {
      await work(serial).catch((error: Error) => failures.push(`${work.name}: ${error.message}`));
      await pause(every);
    }
  };
  const loops = [loop(25, apiServer), loop(25, apiServer), loop(100, newcomer), loop(100, keeper)];
  return {
    /** So many more calls were answered. */
    served: (calls: number) => {
      const enough = count.calls + calls;
      return eventually(
        async () => count.calls,
        (made) => made >= enough,
        DEADLINE,
      );
    },
    /** So many certificates were shown to newcomers. */
    shown: (enough: number) =>
      eventually(
        async () => certificates.size,
        (all) => all >= enough,
        DEADLINE,
      ),
    end: async () => {
      isOver = true;
      await Promise.all(loops);
      kept.destroy();
      return { failures, ...count, sockets: sockets.size, certificates: certificates.size };
    },
  };
}

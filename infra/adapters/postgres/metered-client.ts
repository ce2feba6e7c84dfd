// The client library's connection, which ends where a server sends too much.
import type { Duplex } from 'node:stream';
import pg from 'pg';
import { createReplyMeter, metered, type ReplyMeter } from './reply-meter.ts';

export interface MeteredClient extends pg.PoolClient {
  readonly meter: ReplyMeter;
}

/** The library's own hook for what a stream brings, before and after TLS; its types leave it out. */
interface Attaching {
  stream: Duplex;
  attachListeners(stream: unknown): void;
}

export class Client extends pg.Client {
  readonly meter: ReplyMeter;
  constructor(config?: pg.ClientConfig) {
    super(config);
    const connection = this.connection as unknown as Attaching;
    this.meter = createReplyMeter((error) => connection.stream.destroy(error));
    const attach = connection.attachListeners.bind(connection);
    connection.attachListeners = (stream) => attach(metered(stream as Duplex, this.meter));
  }
}

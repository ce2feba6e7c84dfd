// The client library's connection, which ends if a server sends too much.
import type { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import pg from 'pg';
import { createReplyMeter, meterStream, type ReplyMeter } from './reply-meter.ts';

export interface MeteredClient extends pg.PoolClient {
  readonly meter: ReplyMeter;
}

/**
 * The parts of the library's connection that its types leave out; `attachListeners` is its hook for a stream's data,
 * before and after TLS.
 */
interface Connection extends EventEmitter {
  /** Sockets of Workers have no `destroySoon`. */
  stream: Duplex & { destroySoon?(): void };
  attachListeners(stream: unknown): void;
  end(): void;
}

export class Client extends pg.Client {
  readonly meter: ReplyMeter;
  constructor(config?: pg.ClientConfig) {
    super(config);
    const connection = this.connection as unknown as Connection;
    this.meter = createReplyMeter((error) => connection.stream.destroy(error));
    const attach = connection.attachListeners.bind(connection);
    connection.attachListeners = (stream) => attach(meterStream(stream as Duplex, this.meter));
    closeWithoutServer(connection);
  }
}

/**
 * Closes connections that could not be made, or that the pool no longer uses. The library waits for the server to close
 * them, so a server that never does would use up all sockets.
 */
function closeWithoutServer(connection: Connection): void {
  const close = () => void connection.stream.destroy();
  connection.on('error', close);
  connection.once('errorMessage', close);
  connection.once('readyForQuery', () => connection.off('errorMessage', close));
  const end = connection.end.bind(connection);
  connection.end = () => {
    end();
    connection.stream.destroySoon?.();
  };
}

// Connections to a Redis: refused replies never reach the client library, and a server in cluster mode is refused.
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { AbstractConnector, RedisOptions } from 'ioredis';
import { Pieces } from '#core/json/bytes.ts';
import { createReplyGuard } from './reply-guard.ts';

export interface ConnectorDependencies {
  /** Bytes of a reply. */
  readonly maxReply: number;
  /** Called with the reason if a connection is refused. */
  readonly refuse: (why: string) => void;
}

const IN_CLUSTER_MODE =
  'runs in cluster mode, which the operator does not support: use a Redis or Valkey with cluster mode off';

/** Creates the class for the option `Connector` of the client library. `Base`: the library's own class. */
export function createConnector(Base: typeof AbstractConnector, { maxReply, refuse }: ConnectorDependencies) {
  return class Connector extends Base {
    readonly #options: RedisOptions;
    #guard = createReplyGuard(maxReply);
    // The library hands its options over, untyped.
    constructor(options: unknown) {
      const redisOptions = options as RedisOptions;
      super(redisOptions.disconnectTimeout ?? 0);
      this.#options = redisOptions;
    }

    override async connect(): Promise<Socket | TLSSocket> {
      const { host = 'localhost', port = 6379, tls } = this.#options;
      this.connecting = true;
      const stream = tls === undefined ? createConnection({ host, port }) : connectTls({ host, port, ...tls });
      stream.once('error', (error) => {
        this.firstError = error;
      });
      this.#guard = createReplyGuard(maxReply);
      this.stream = guardStream(stream, this.#guard);
      return stream;
    }

    /** Checks the reply to INFO before the connection is used; it is empty if the server forbids INFO. */
    override check(info: unknown): boolean {
      const { redis_mode: mode, cluster_enabled: isEnabled } = (info ?? {}) as Readonly<Record<string, unknown>>;
      this.#guard.ready();
      if (mode !== 'cluster' && isEnabled !== '1') return true;
      refuse(IN_CLUSTER_MODE);
      return false;
    }
  };
}

/** Bytes of a reply that the library gets at a time, unless it ends. */
const MIN_PIECE = 512;

type Method = (...of: unknown[]) => boolean;

/**
 * Guards a stream: each write of the library is one command, and refused data ends the connection before the library
 * gets it.
 */
function guardStream<S extends Socket>(stream: S, guard: ReturnType<typeof createReplyGuard>): S {
  const [emit, write] = [stream.emit.bind(stream) as Method, stream.write.bind(stream) as Method];
  const pieces = new Pieces();
  stream.write = (...data: unknown[]) => {
    guard.commandSent();
    return write(...data);
  };
  stream.emit = (event: string | symbol, ...of: unknown[]) => {
    if (event !== 'data') return emit(event, ...of);
    if (stream.destroyed) return false;
    let isWhole: boolean;
    try {
      isWhole = guard.read(of[0] as Buffer);
    } catch (error) {
      stream.destroy(error as Error);
      return true;
    }
    if (isWhole && pieces.length === 0) return emit(event, ...of);
    pieces.add(of[0] as Buffer);
    if (!isWhole && pieces.length < MIN_PIECE) return true;
    const { buffer, byteOffset, length } = pieces.take();
    return emit(event, Buffer.from(buffer, byteOffset, length));
  };
  return stream;
}

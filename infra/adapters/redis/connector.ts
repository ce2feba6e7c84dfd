// Connections to a Redis: refused replies never reach the client library.
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { AbstractConnector, RedisOptions } from 'ioredis';
import { Pieces } from '#core/json/bytes.ts';
import { createReplyGuard } from './reply-guard.ts';

/** The reply to INFO by field; empty if the server forbids INFO. */
export type ServerState = Readonly<Partial<Record<string, string>>>;

export interface ConnectorDependencies {
  /** Bytes of a reply. */
  readonly maxReply: number;
  /** Called with the state of the server before the connection is used. */
  readonly ready: (state: ServerState) => void;
}

/** Creates the class for the option `Connector` of the client library. `Base`: the library's own class. */
export function createConnector(Base: typeof AbstractConnector, { maxReply, ready }: ConnectorDependencies) {
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

    /** The library passes the reply to INFO, untyped. */
    override check(info: unknown): boolean {
      this.#guard.ready();
      ready((info ?? {}) as ServerState);
      return true;
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

// One HTTP exchange: a client's request, and the reply to it. Each platform implements it (infra/runtime/node,
// infra/platforms/cloudflare).

/** The reason why a body is read no further. */
export type BodyRefusal = 'too large' | 'no room';

/**
 * The whole body, whose announced length the caller accepts. `accept` gets the size of each piece; once it refuses, no
 * more is read.
 * `broken`: the client left before the end.
 */
export type ReadBody = (
  accept: (bytes: number) => BodyRefusal | undefined,
) => Promise<Uint8Array | BodyRefusal | 'broken'>;

/** The key that long work is for; all keys of a namespace together have as many turns as one of another namespace. */
export interface TurnOwner {
  readonly namespace: string;
  readonly key: string;
}

/** The methods need `this`. After the client has left, writes are dropped. */
export interface HttpExchange {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  /** The query with its question mark; empty where there is none. */
  readonly query: string;
  /** A header of the request by its name in lower case. */
  header(name: string): string | undefined;
  /** Reads the body. May be called once. */
  readBody(...parameters: Parameters<ReadBody>): ReturnType<ReadBody>;
  /**
   * Resolves when long work for this key may run: one long work in a turn, or several short ones, and everything else
   * that has arrived between two turns. Absent where requests do not share a thread.
   */
  turn?(owner: TurnOwner): Promise<void>;
  /** Ends the reading before the end of the body: its result is of no use. */
  stopReading(): void;
  /**
   * Begins the reply. The head goes out with the first bytes, or with `flush`. A header that cannot be sent is an error
   * here or there, before any byte.
   */
  begin(status: number, headers: Readonly<Record<string, string>>): void;
  flush(): void;
  /** Whether any of the reply has gone out. */
  hasBegun(): boolean;
  /** False: the client is slower than we are, and `drained` should be awaited. */
  write(pieces: ReadonlyArray<Uint8Array>): boolean;
  /** Resolves when there is room again, or no reader; of a reply that was ended, when its last byte was taken. */
  drained(): Promise<void>;
  /** Ends the reply with these bytes, or this text. */
  end(body: ReadonlyArray<Uint8Array> | string): void;
  /**
   * Breaks the reply off behind these bytes, which reach a client that reads: no client takes the reply for a whole
   * one.
   */
  destroy(last?: ReadonlyArray<Uint8Array>): void;
  hasLeft(): boolean;
  /**
   * Calls the listener when the client leaves before the end of the reply, at most once; never for a client that has
   * left before.
   */
  onLeave(listener: () => void): void;
}

/**
 * Answers one exchange. Resolves when all its work is done; never rejects. `path`: replaces the request's own, where
 * several handlers share an address.
 */
export type HttpHandler = (exchange: HttpExchange, path?: string) => Promise<void>;

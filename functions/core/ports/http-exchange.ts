// One HTTP exchange: a client's request, and the reply to it. Each platform implements it (infra/runtime/node,
// infra/platforms/cloudflare).

/** The reason why a body is read no further. */
export type BodyRefusal = 'too large' | 'no room';

/**
 * Reads the whole body. `accept` gets the size of each piece; once it refuses, no more is read. `broken`: the client
 * left before the end.
 */
export type ReadBody = (
  accept: (bytes: number) => BodyRefusal | undefined,
) => Promise<Uint8Array | BodyRefusal | 'broken'>;

/** The VirtualKey that long work is for. Namespaces take turns, and so do the VirtualKeys of each. */
export interface TurnOwner {
  readonly namespace: string;
  readonly key: string;
}

/** The methods need `this`. After the client has left, writes are dropped. */
export interface HttpExchange {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  /** The query with its question mark; empty if there is none. */
  readonly query: string;
  /** A header of the request by its name in lower case. */
  header(name: string): string | undefined;
  /** Reads the body. May be called once. */
  readBody(...parameters: Parameters<ReadBody>): ReturnType<ReadBody>;
  /**
   * Resolves when long work for this VirtualKey may run. A turn has one long work, or several short ones; between two
   * turns the process handles everything else that has arrived. Absent if requests do not share a thread.
   */
  turn?(owner: TurnOwner): Promise<void>;
  /** Stops reading the body before its end: the result of `readBody` is not used any more. */
  stopReading(): void;
  /**
   * Begins the reply. The head is sent with the first bytes, or with `flush`. For a header that cannot be sent, this
   * method or the one that sends the head throws, before any byte is sent.
   */
  begin(status: number, headers: Readonly<Record<string, string>>): void;
  flush(): void;
  /** Whether a part of the reply has been sent. */
  hasBegun(): boolean;
  /** Returns false if the client reads more slowly than the gateway writes: then await `drained`. */
  write(pieces: ReadonlyArray<Uint8Array>): boolean;
  /** Resolves when more can be written, or the client has left; after `end`, when the last byte was taken. */
  drained(): Promise<void>;
  /** Ends the reply with these bytes, or this text. */
  end(body: ReadonlyArray<Uint8Array> | string): void;
  /**
   * Sends these bytes, then ends the connection, so that no client takes the reply for a complete one.
   */
  destroy(last?: ReadonlyArray<Uint8Array>): void;
  hasLeft(): boolean;
  /**
   * Calls the listener once if the client leaves before the end of the reply; not if the client has already left.
   */
  onLeave(listener: () => void): void;
}

/**
 * Answers one exchange. Resolves when all its work is done; never rejects. `path`: replaces the path of the request, if
 * several handlers share an address.
 */
export type HttpHandler = (exchange: HttpExchange, path?: string) => Promise<void>;

// Streamed replies, where the platform has something cheaper than a web stream.

/** A reply that has begun. After the client has left, what is written is dropped. */
export interface ReplyStream {
  /** Sends the headers now; otherwise they go with the first bytes. */
  flush(): void;
  /** False: the client is slower than we are, and `drained` should be awaited. */
  write(pieces: ReadonlyArray<Uint8Array>): boolean;
  /** Resolves when there is room again, or nobody who reads. */
  drained(): Promise<void>;
  /** Ends the reply with these. */
  end(pieces: ReadonlyArray<Uint8Array>): void;
  /** Breaks it off, so that nobody takes it for a whole one. */
  destroy(): void;
}

/** Begins a reply to one request. The handler answers `response`, which stands for what is written. */
export type OpenReply = (
  status: number,
  headers: Readonly<Record<string, string>>,
) => { readonly stream: ReplyStream; readonly response: Response };

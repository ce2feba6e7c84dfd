// The credentials of one gateway, and how it reaches an upstream.

/** Values of credential Secrets, as the platform mounts them. Undefined: not there (yet). */
export interface Credentials {
  read(secret: string, entry: string): string | undefined;
}

export interface UpstreamRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Milliseconds to the connection, to the first byte of the response, between two bytes. */
  readonly timeouts: { readonly connect: number; readonly firstByte: number; readonly idle: number };
  readonly signal: AbortSignal;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends when the reply ends; throws `UpstreamBroke` when it breaks. Returning early cancels the upstream. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Whether all of the body has arrived, read or not: then it need not be read on for the connection's sake. Absent where that is not known. */
  readonly hasEnded?: (() => boolean) | undefined;
}

/** Speaks HTTP to a provider. Throws `UpstreamBroke` with what happened. */
export type Upstream = (request: UpstreamRequest) => Promise<UpstreamResponse>;

/**
 * `unsent`: stopped, or out of time, while there was no connection yet, so that surely no byte of the request has left. Where a platform does not tell
 * when it connects (fetch), only a call that was stopped before it began is; any other may have been read, and is `broken` or `refused`.
 */
export type Breach = 'refused' | 'timeout' | 'broken' | 'unsent';

export class UpstreamBroke extends Error {
  override readonly name = 'UpstreamBroke';
  readonly how: Breach;
  constructor(how: Breach, message: string, options?: ErrorOptions) {
    super(message, options);
    this.how = how;
  }
}

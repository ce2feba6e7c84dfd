// The credentials of one gateway, and how it reaches an upstream.

/** Values of credential Secrets, as the platform mounts them. Undefined: not mounted (yet). */
export interface Credentials {
  read(secret: string, secretKey: string): string | undefined;
}

/**
 * The authorization of requests that no fixed header can give: a signature of AWS (SigV4) over the whole request, or a
 * short-lived access token of Google. `pod-role`: with credentials that `issuer` gives to the Pod (IRSA, Workload
 * Identity).
 */
export type Signing =
  | { readonly signer: 'pod-role'; readonly issuer: 'aws'; readonly service: string; readonly region: string }
  | { readonly signer: 'pod-role'; readonly issuer: 'google' }
  | {
      readonly signer: 'aws';
      readonly service: string;
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly sessionToken?: string;
    }
  | {
      readonly signer: 'google';
      readonly clientEmail: string;
      /** PKCS #8 in PEM. */
      readonly privateKey: string;
      readonly privateKeyId: string | undefined;
      readonly tokenUri: string;
    };

/**
 * The stop of a call, as an `AbortSignal` shows it. Any `AbortSignal` is one, but in Node it takes seven times as long
 * as a plain object, and each request has one.
 */
export interface StopSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface UpstreamRequest {
  /** The address of the model entry. The client chooses no part of it, so it may be cached. */
  readonly url: string;
  /** The query of the client, with its question mark; absent: none. */
  readonly query?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The signing of the request; absent: none. */
  readonly signing?: Signing | undefined;
  /** The parts of the body, in order. A text means its bytes in UTF-8. */
  readonly body: ReadonlyArray<Uint8Array | string>;
  /** The maximum milliseconds to the connection, to the first byte of the response, and between two bytes. */
  readonly timeouts: { readonly connect: number; readonly firstByte: number; readonly idle: number };
  readonly signal: StopSignal;
}

export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends when the reply ends; throws `UpstreamError` when it breaks. Returning early cancels the upstream. */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * Whether the whole body has arrived, read or not: then the connection can be reused without reading the rest.
   * Absent: unknown.
   */
  readonly hasEnded?: (() => boolean) | undefined;
}

/** Sends an HTTP request to a provider. Throws `UpstreamError` with the kind of failure; any other error is our own. */
export type Upstream = (request: UpstreamRequest) => Promise<UpstreamResponse>;

/**
 * Kinds of failed calls. `unsent`: stopped or timed out before there was a connection. `refused`: no connection was
 * possible, or the other side speaks another protocol. `not signed`: no signature or token was possible. After these
 * three the provider has certainly not taken the request. `no room`: the gateway has no memory for the reply. `timeout`
 * and `broken`: the provider may have taken the request, and is silent or has closed the connection. If a platform does
 * not show whether it connected (`fetch` on Workers), a failed call is `broken`, unless it was stopped before it began.
 */
export type UpstreamErrorKind = 'refused' | 'timeout' | 'broken' | 'unsent' | 'not signed' | 'no room';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly kind: UpstreamErrorKind;
  constructor(kind: UpstreamErrorKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

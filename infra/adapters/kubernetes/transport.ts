// How does a Kubernetes client speak HTTP: what goes out, what comes back?

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** From the root of the API server, query included. */
  readonly path: string;
  /** What the answer may be; absent: JSON. */
  readonly accept?: string;
  readonly contentType?: string;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface KubeResponse {
  readonly status: number;
  /** The header `Retry-After` as it came. */
  readonly retryAfter: string | undefined;
  /** Read one of the two, once. */
  readonly text: () => Promise<string>;
  readonly stream: () => AsyncIterable<Uint8Array>;
}

/** Sends one request with the identity it was made for. Rejects when no response came. */
export type KubeTransport = (request: KubeRequest) => Promise<KubeResponse>;

export const USER_AGENT = 'gateway-operator';

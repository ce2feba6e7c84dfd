// What must be known of an API server to reach it, and what is had of it once it is reached?
import type { KubeRequest, KubeResponse } from './transport.ts';

export interface Server {
  /** Without a slash at its end. */
  readonly address: string;
  /** What Node's TLS takes. */
  readonly tls: Readonly<Record<string, unknown>>;
  /** The proxy on the way, if any. */
  readonly proxy?: string | undefined;
}

export interface Outgoing extends Pick<KubeRequest, 'method' | 'path' | 'signal'> {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** Rejects when no response came, or when the signal ended the call. The signal ends a response too that is being read. */
export type Send = (request: Outgoing) => Promise<KubeResponse>;

export interface Connections {
  readonly send: Send;
  /** Lets what is open end, and keeps nothing after that. */
  readonly retire: () => void;
  readonly destroy: () => Promise<void>;
}

/** So many at a time; a watch holds one as long as it lasts. */
export const MOST_CONNECTIONS = 32;

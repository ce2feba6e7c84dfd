// The platform that a function runs on: hashes, randomness, timers, memory, and the image of gateways.
import type { KubeObject } from './cluster.ts';
import type { Millis } from './money.ts';

/** Hex SHA-256 of a text. Key values are looked up by it. */
export type Hash = (text: string) => string;

/** Hex HMAC-SHA-256 of a text (RFC 2104). Nobody without the secret can make one. */
export type Mac = (secret: string, text: string) => string;

/** `count` random bytes from a cryptographic source. */
export type Random = (count: number) => Uint8Array;

/** Calls back after `millis`; returns a function that cancels. */
export type Timer = (millis: number, callback: () => void) => () => void;

/** The maximum of JavaScript's own timers, in milliseconds: with more they fire immediately. */
export const MAX_TIMER = 2 ** 31 - 1;

/** The memory of a process, in bytes. */
export interface ProcessMemory {
  /** The maximum: beyond it the platform ends the process. */
  readonly limit: number;
  /** The part of `limit` that objects and texts may take; absent: half of it. */
  readonly heap?: number;
  /** The part of `limit` that an idle process takes. */
  readonly own: number;
  /** The largest body of a request that the process reads; absent: as much as `limit` allows. */
  readonly largestBody?: number;
  /**
   * A request counts as ended after this time, because the platform may end it without notice. Absent: each request
   * ends by itself.
   */
  readonly maxRequestTime?: Millis;
}

export interface Platform {
  /**
   * `{base_url}` of an instance of workload type `Auto` that the platform itself serves (with the gateway of the local
   * stack); undefined if the platform does not serve it.
   */
  servedAt(instance: KubeObject): string | undefined;
  /** The image of gateways that name none. */
  readonly gatewayImage: string;
  /** Secrets, in each instance's namespace, that pull this image. Absent: none. */
  readonly gatewayPullSecrets?: ReadonlyArray<string>;
  /** Domains whose labels and annotations the Secret of a key may have. Absent: none. */
  readonly secretPrefixes?: ReadonlyArray<string>;
  /**
   * The version of this operator, `1.2.3`. Objects that it writes for a gateway show it. Objects of a later version are
   * not changed.
   */
  readonly version: string;
  /**
   * Whether more than one process may serve an instance whose gateway runs elsewhere: then a `memory` store is refused
   * (`StoreNotShared`).
   */
  readonly manyProcesses: boolean;
  /**
   * Whether the reconciler runs in the cluster: then a host without a dot is a Service of the instance's namespace, as
   * it is for the gateway's Pods.
   */
  readonly inCluster: boolean;
}

// The platform that a function runs on: hashes, randomness, timers, and where gateways run.
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
  /** All that it may take, before the platform ends it. */
  readonly limit: number;
  /** The part of it that objects and texts may take; absent: half of it. */
  readonly heap?: number;
  /** The part that it takes while it does nothing. */
  readonly own: number;
  /** The largest body of a request that it reads; absent: as the limit allows. */
  readonly largestBody?: number;
  /**
   * A request is over after this time, also where the platform ends it without a word; absent: it always ends by
   * itself.
   */
  readonly maxRequestTime?: Millis;
}

export interface Platform {
  /**
   * `{base_url}` of an instance of workload type `Auto` where the platform itself serves it (the local stack's own
   * gateway); undefined where it does not.
   */
  servedAt(instance: KubeObject): string | undefined;
  /** The image of gateways that name none. */
  readonly gatewayImage: string;
  /** Secrets, in each instance's namespace, that pull this image. Absent: none. */
  readonly gatewayPullSecrets?: ReadonlyArray<string>;
  /** Domains whose labels and annotations the Secret of a key may have. Absent: none. */
  readonly secretPrefixes?: ReadonlyArray<string>;
  /**
   * The version of this operator, `1.2.3`. Objects that it writes for a gateway carry it; objects of a later version
   * are left alone.
   */
  readonly version: string;
  /**
   * Whether more than one process may serve an instance whose gateway runs elsewhere: then a `memory` store is refused
   * (`StoreNotShared`).
   */
  readonly manyProcesses: boolean;
  /**
   * Whether reconcile runs in the cluster: then a host without a dot is a Service of the instance's namespace, as it is
   * for the gateway's Pods.
   */
  readonly inCluster: boolean;
}

// The connection of a request, where the platform lends it: each method is cheaper than what every platform has for it.
import type { OpenReply } from './reply.ts';

/** A type, not an interface: frameworks take it as a record of anything. To be called as its methods. */
export type Connection = {
  openReply(...head: Parameters<OpenReply>): ReturnType<OpenReply>;
  /** In place of the request's own body; once. */
  readBody(...of: Parameters<ReadBody>): ReturnType<ReadBody>;
  /** In place of the request's signal. */
  hasLeft(): boolean;
  /** Tells the listener when the client leaves before its reply has ended, at most once; not of a client that has left before. */
  onLeave(listener: () => void): void;
};

/** Why a body is read no further. */
export type BodyRefusal = 'too large' | 'no room';

/** All that the client sends, unless `accept`, which is told of each piece's bytes, refuses: then no more is read. `broken`: it left before the end. */
export type ReadBody = (
  accept: (bytes: number) => BodyRefusal | undefined,
) => Promise<Uint8Array | BodyRefusal | 'broken'>;

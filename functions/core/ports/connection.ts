// What may a handler do with a request's connection where the platform lends it? Each is cheaper than what every platform has for it.
import type { OpenReply } from './reply.ts';

/** A type, not an interface: frameworks take it as a record of anything. */
export type Connection = {
  readonly openReply: OpenReply;
  /** In place of the request's own body; once. */
  readonly readBody: ReadBody;
  /** In place of the request's signal. */
  readonly hasLeft: () => boolean;
};

/** All that the client sends, unless that is more than so many bytes: then no more is read. `broken`: it left before the end. */
export type ReadBody = (most: number) => Promise<Uint8Array | 'too large' | 'broken'>;

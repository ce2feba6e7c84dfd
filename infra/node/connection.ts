// What does a function get of the connection of a request that Node serves?
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Connection, ReadBody } from '#core/ports/connection.ts';
import type { OpenReply } from '#core/ports/reply.ts';
import { openDirectReply } from './reply-stream.ts';
import { readDirectBody } from './request-body.ts';

export function lend(incoming: IncomingMessage, outgoing: ServerResponse): Connection {
  return new Lent(incoming, outgoing);
}

/** A class, because one is made for each request: methods are shared. */
class Lent implements Connection {
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  openReply(...head: Parameters<OpenReply>): ReturnType<OpenReply> {
    return openDirectReply(this.#outgoing, ...head);
  }

  readBody(...[accept]: Parameters<ReadBody>): ReturnType<ReadBody> {
    return readDirectBody(this.#incoming, accept);
  }

  hasLeft(): boolean {
    return this.#outgoing.destroyed;
  }

  onLeave(listener: () => void): void {
    const outgoing = this.#outgoing;
    // It closes too when all has been written.
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) listener();
    });
  }
}

// How is a streamed reply written to a connection of Node's? A web stream in between costs more than all that is done for a word of it.
import { type ServerResponse, validateHeaderValue } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { OpenReply, ReplyStream } from '#core/ports/reply.ts';

type Head = Parameters<OpenReply>;

/** Of the request that this is the response to. That the client has left is told by the connection. */
export function openDirectReply(outgoing: ServerResponse, ...head: Head): ReturnType<OpenReply> {
  const [, headers] = head;
  for (const name in headers) validateHeaderValue(name, headers[name] ?? '');
  return { response: RESPONSE_ALREADY_SENT, stream: new DirectReply(outgoing, head) };
}

/** A class, because one is made for each stream: methods are shared. */
class DirectReply implements ReplyStream {
  readonly #outgoing: ServerResponse;
  /** Not yet written: with all that follows, where that is there at once, it goes out in one piece. */
  #head: Head | undefined;

  constructor(outgoing: ServerResponse, head: Head) {
    this.#outgoing = outgoing;
    this.#head = head;
  }

  flush(): void {
    if (this.#outgoing.destroyed) return;
    this.#begin();
    this.#outgoing.flushHeaders();
  }

  write(pieces: ReadonlyArray<Uint8Array>): boolean {
    if (this.#outgoing.destroyed) return true;
    this.#begin();
    return this.#outgoing.write(whole(pieces));
  }

  drained(): Promise<void> {
    const outgoing = this.#outgoing;
    return new Promise((resolve) => {
      const done = () => {
        outgoing.off('drain', done).off('close', done);
        resolve();
      };
      if (outgoing.destroyed || !outgoing.writableNeedDrain) return resolve();
      outgoing.on('drain', done).on('close', done);
    });
  }

  end(pieces: ReadonlyArray<Uint8Array>): void {
    if (this.#outgoing.destroyed) return;
    const bytes = whole(pieces);
    this.#begin(bytes.length);
    this.#outgoing.end(bytes);
  }

  destroy(): void {
    this.#outgoing.destroy();
  }

  /** `length` of the reply, where that is known. */
  #begin(length?: number): void {
    if (this.#head === undefined) return;
    const [status, headers] = this.#head;
    this.#head = undefined;
    this.#outgoing.writeHead(status, length === undefined ? headers : { ...headers, 'content-length': length });
  }
}

/** Each piece of its own would be a chunk of the transfer of its own. */
function whole(pieces: ReadonlyArray<Uint8Array>): Uint8Array {
  const [first] = pieces;
  return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
}

// What is a connection in a test? One that can be written to without a web stream in between, as Node's, and whose client reads or leaves.
import type { OpenReply } from '#core/ports/reply.ts';
import { concat } from './members.ts';

export interface ConnectionFake {
  readonly openReply: OpenReply;
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
  /** What the client gets, when it gets something: of what is answered, or of what is written in its place. */
  received(answered: Response): Promise<Response>;
}

/** Has room for so many writes that the client has not read. */
export function createConnectionFake(room: number): ConnectionFake {
  const gone = new AbortController();
  let received: Promise<Response> | undefined;

  const openReply: OpenReply = (status, headers) => {
    let wake: () => void = () => {};
    let client: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          client = controller;
        },
        pull: () => wake(),
        cancel: () => {
          client = undefined;
          wake();
          gone.abort();
        },
      },
      new CountQueuingStrategy({ highWaterMark: room }),
    );
    let arrive: () => void = () => {};
    const response = new Response(body, { status, headers });
    received = new Promise((resolve) => {
      arrive = () => resolve(response);
    });
    return {
      response: new Response(null, { status: 299 }),
      stream: {
        flush: () => arrive(),
        write: (pieces) => {
          arrive();
          client?.enqueue(concat(pieces));
          return (client?.desiredSize ?? 1) > 0;
        },
        drained: () =>
          new Promise((resolve) => {
            wake = resolve;
            if ((client?.desiredSize ?? 1) > 0) resolve();
          }),
        end: (pieces) => {
          arrive();
          const bytes = concat(pieces);
          if (bytes.length > 0) client?.enqueue(bytes);
          client?.close();
        },
        destroy: () => client?.error(new Error('the connection was closed')),
      },
    };
  };

  return { openReply, signal: gone.signal, received: async (answered) => received ?? answered };
}

/** The ways on which a stream reaches its client, and how much room a connection has. */
export const WAYS: ReadonlyArray<[string, number | undefined]> = [
  ['a web stream', undefined],
  ['a connection that is always full', 1],
  ['a connection with room', 100],
];

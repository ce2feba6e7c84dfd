// How is a streamed reply written to a connection of Node's? A web stream in between costs more than all that is done for a word of it.
import type { ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { OpenReply } from '#core/ports/reply.ts';

/** For the request that this is the response to. That the client has left is told by the request's signal. */
export function directReply(outgoing: ServerResponse): OpenReply {
  return function openReply(status, headers) {
    outgoing.writeHead(status, headers);
    return {
      response: RESPONSE_ALREADY_SENT,
      stream: {
        flush: () => {
          if (!outgoing.destroyed) outgoing.flushHeaders();
        },
        write: (bytes) => outgoing.destroyed || outgoing.write(bytes),
        drained: () => drained(outgoing),
        end: (bytes) => {
          if (!outgoing.destroyed) outgoing.end(bytes);
        },
        destroy: () => void outgoing.destroy(),
      },
    };
  };
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('drain', done).off('close', done);
      resolve();
    };
    if (outgoing.destroyed || !outgoing.writableNeedDrain) return resolve();
    outgoing.on('drain', done).on('close', done);
  });
}

// A request's body, read from a connection of Node's: through the web's `Request` a short one costs twice as much.
import type { IncomingMessage } from 'node:http';
import type { ReadBody } from '#core/ports/connection.ts';

export function readDirectBody(incoming: IncomingMessage, accept: Parameters<ReadBody>[0]): ReturnType<ReadBody> {
  return new Promise((resolve) => {
    const pieces: Uint8Array[] = [];
    const finish = (body: Awaited<ReturnType<ReadBody>>) => {
      incoming.off('data', take).off('end', end).off('error', fail).off('close', fail);
      resolve(body);
    };
    const take = (piece: Uint8Array) => {
      pieces.push(piece);
      const refused = accept(piece.length);
      if (refused === undefined) return;
      incoming.pause();
      finish(refused);
    };
    const end = () => finish(pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces));
    const fail = () => finish('broken');
    if (incoming.destroyed || incoming.readableEnded) return fail();
    incoming.on('data', take).on('end', end).on('error', fail).on('close', fail);
  });
}

// What did the client send? Its body's bytes, up to 32 MiB.
import type { Failure } from '#core/failure.ts';
import { err, ok, type Result } from '#core/result.ts';
import { concat } from './members.ts';

export const LARGEST_BODY = 32 * 1024 * 1024;

/** Reads the whole body; a body that is larger, or says that it will be, is read no further. */
export async function readBody(request: Request): Promise<Result<Uint8Array, Failure>> {
  const tooLarge = err<Failure>({ code: 'request_too_large', limit: LARGEST_BODY });
  const declared = request.headers.get('content-length');
  if (declared !== null && Number(declared) > LARGEST_BODY) return tooLarge;
  try {
    // A server holds a client to its content-length, so this is bounded; a chunked body is not.
    if (declared !== null) return within(new Uint8Array(await request.arrayBuffer()));
    const bytes = await readChunks(request);
    return bytes === undefined ? tooLarge : ok(bytes);
  } catch {
    return err({ code: 'invalid_request', message: 'The request body ended before it was complete.' });
  }

  function within(bytes: Uint8Array): Result<Uint8Array, Failure> {
    return bytes.length > LARGEST_BODY ? tooLarge : ok(bytes);
  }
}

async function readChunks(request: Request): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  if (request.body === null) return new Uint8Array(0);
  for await (const piece of request.body) {
    length += piece.length;
    if (length > LARGEST_BODY) return undefined;
    pieces.push(piece);
  }
  return concat(pieces);
}

// What did the client send? Its body's bytes, up to 32 MiB.
import type { Failure } from '#core/failure.ts';
import type { ReadBody } from '#core/ports/connection.ts';
import { err, ok, type Result } from '#core/result.ts';
import type { Visit } from './deps.ts';
import { concat } from './members.ts';

export const LARGEST_BODY = 32 * 1024 * 1024;

const TOO_LARGE: Failure = { code: 'request_too_large', limit: LARGEST_BODY };
const BROKEN: Failure = { code: 'invalid_request', message: 'The request body ended before it was complete.' };

/** Reads the whole body; a body that is larger, or says that it will be, is read no further. */
export async function readBody(
  request: Request,
  { connection }: Pick<Visit, 'connection'>,
): Promise<Result<Uint8Array, Failure>> {
  const declared = request.headers.get('content-length');
  if (declared !== null && Number(declared) > LARGEST_BODY) return err(TOO_LARGE);
  const body = await (connection?.readBody?.(LARGEST_BODY) ?? readRequest(request, LARGEST_BODY));
  if (body === 'too large') return err(TOO_LARGE);
  return body === 'broken' ? err(BROKEN) : ok(body);
}

/** Where no platform has a shorter way. */
async function readRequest(request: Request, most: number): ReturnType<ReadBody> {
  try {
    // A server holds a client to its content-length, so this is bounded; a chunked body is not.
    if (!request.headers.has('content-length')) return await readChunks(request, most);
    const body = new Uint8Array(await request.arrayBuffer());
    return body.length > most ? 'too large' : body;
  } catch {
    return 'broken';
  }
}

async function readChunks(request: Request, most: number): Promise<Uint8Array | 'too large'> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  if (request.body === null) return new Uint8Array(0);
  for await (const piece of request.body) {
    length += piece.length;
    if (length > most) return 'too large';
    pieces.push(piece);
  }
  return concat(pieces);
}

// What does a provider say that compresses its answer although we ask for plain bytes?
import { pipeline, Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { toBroken } from './broken.ts';

/** The plain bytes, as soon as they can be told; undefined where the encoding is none that we know. */
export function decoded(body: AsyncIterable<Uint8Array>, encoding: string): AsyncIterable<Uint8Array> | undefined {
  const decoder = decoderFor(encoding.toLowerCase());
  if (decoder === undefined) return undefined;
  // An error reaches whoever reads the decoder; the callback only keeps it from being thrown twice.
  return bytesOf(pipeline(Readable.from(body), decoder, () => {}));
}

function decoderFor(encoding: string) {
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip();
  if (encoding === 'deflate') return createInflate();
  return encoding === 'br' ? createBrotliDecompress() : undefined;
}

async function* bytesOf(body: Readable): AsyncGenerator<Uint8Array> {
  try {
    // Leaving this loop early destroys the decoder, which ends the answer that feeds it: the provider stops.
    for await (const chunk of body) yield chunk;
  } catch (error) {
    throw toBroken(error);
  }
}

// Answers of token services, which are short.
import { fromUtf8, readBytes } from '#core/json/bytes.ts';

/** Bytes. A token has 2 KiB at most. */
const MAX_ANSWER = 64 * 1024;
/** The text of the answer. Rejects where it is longer than 64 KiB: the rest is not received. */
export async function readAnswer({ body }: Response): Promise<string> {
  const bytes = await readBytes(body, MAX_ANSWER);
  if (bytes === undefined) throw new Error(`the answer of the token service is longer than ${MAX_ANSWER} bytes`);
  return fromUtf8(bytes);
}

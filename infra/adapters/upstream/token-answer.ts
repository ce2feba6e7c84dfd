// Answers of token services, which are short.
import { fromUtf8, readBytes } from '#core/json/bytes.ts';

/** The maximum bytes of an answer. A token has at most 2 KiB. */
const MAX_ANSWER = 64 * 1024;
/** The text of the answer. Rejects if it has more than `MAX_ANSWER` bytes: the rest is not received. */
export async function readAnswer({ body }: Response): Promise<string> {
  const bytes = await readBytes(body, MAX_ANSWER);
  if (bytes === undefined) throw new Error(`the answer of the token service is longer than ${MAX_ANSWER} bytes`);
  return fromUtf8(bytes);
}

// Replies of token services, which are short.
import { fromUtf8, readBytes } from '#core/json/bytes.ts';

/** The maximum bytes of a reply. A token has at most 2 KiB. */
const MAX_REPLY = 64 * 1024;
/** The text of the reply. Rejects if it has more than `MAX_REPLY` bytes: the rest is not received. */
export async function readTokenReply({ body }: Response): Promise<string> {
  const bytes = await readBytes(body, MAX_REPLY);
  if (bytes === undefined) throw new Error(`the reply of the token service is longer than ${MAX_REPLY} bytes`);
  return fromUtf8(bytes);
}

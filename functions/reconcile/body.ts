// Bodies of requests to the reconciler: short texts. A body that is too long or too slow is not read to its end.

import { err, ok, type Result } from '#core/failure/result.ts';
import { fromUtf8, Pieces } from '#core/json/bytes.ts';
import type { Timer } from '#core/ports/platform.ts';

/** Bytes. An event names one object in less than a kilobyte. */
const MAX_BODY = 64 * 1024;
/** Milliseconds until the last byte. */
const MAX_TIME = 10_000;

/** An HTTP status, and the error of the body. */
export interface BodyFailure {
  readonly status: 400 | 408 | 413;
  readonly error: string;
}

const TOO_LARGE = err<BodyFailure>({ status: 413, error: `the body is larger than ${MAX_BODY} bytes` });
const TOO_SLOW = err<BodyFailure>({ status: 408, error: `the body did not arrive within ${MAX_TIME / 1000} s` });
const BROKEN = err<BodyFailure>({ status: 400, error: 'the body ended before it was complete' });
export async function readText({ body }: Request, timer: Timer): Promise<Result<string, BodyFailure>> {
  const reader = body?.getReader();
  if (reader === undefined) return ok('');
  const cancel = () => void reader.cancel().catch(() => undefined);
  let isLate = false;
  const stop = timer(MAX_TIME, () => {
    isLate = true;
    cancel();
  });
  const pieces = new Pieces();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (pieces.length + piece.value.length > MAX_BODY) {
        cancel();
        return TOO_LARGE;
      }
      pieces.add(piece.value);
    }
    return isLate ? TOO_SLOW : ok(fromUtf8(pieces.take()));
  } catch {
    return BROKEN;
  } finally {
    stop();
  }
}

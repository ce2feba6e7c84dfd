// What is in the body of a request, if it is not too large?

/** The API server sends the object twice, and takes requests of up to 3 MiB itself. */
export const LARGEST_BODY = 7 * 1024 * 1024;

/** Undefined: larger than `largest`. Reads no further than that, whatever the header promises. */
export async function readBody(request: Request, largest = LARGEST_BODY): Promise<Uint8Array | undefined> {
  const promised = request.headers.get('content-length');
  if (Number(promised ?? 0) > largest) return undefined;
  if (promised !== null) {
    // HTTP delivers exactly as much as it promised, and reading it whole is several times as fast.
    const whole = new Uint8Array(await request.arrayBuffer());
    return whole.length > largest ? undefined : whole;
  }
  const reader = request.body?.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
    length += part.value.length;
    if (length > largest) {
      await reader?.cancel();
      return undefined;
    }
    parts.push(part.value);
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

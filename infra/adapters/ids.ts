// Where do ids come from? UUIDv7 (RFC 9562): ordered by time, and the time can be read back.
import type { Clock, Ids } from '#core/ports/clock.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';

/** Twelve bits count the ids of one millisecond (RFC 9562, 6.2, method 1). */
const LAST_COUNT = 0xfff;
/** A clock that is set back less than this is waited out, so that ids stay in order; more than that is followed. */
const BRIDGED: Millis = 10_000;
/** Randomness of one id, and how many are drawn at once: a draw costs more than the rest of an id. */
const BYTES = 10;
const AHEAD = 100;

/** Each id is greater than the one before, also within a millisecond and when the clock stumbles. */
export function createIds({ clock, random }: { readonly clock: Clock; readonly random: Random }): Ids {
  let time = -1;
  let count = 0;
  let drawn = Buffer.alloc(0);
  const draw = (): Buffer => {
    if (drawn.length < BYTES) drawn = Buffer.from(random(BYTES * AHEAD));
    const bytes = drawn.subarray(0, BYTES);
    drawn = drawn.subarray(BYTES);
    return bytes;
  };
  return {
    next: () => {
      const now = Math.floor(clock.now());
      const bytes = draw();
      if (now > time || now < time - BRIDGED) {
        time = now;
        // The upper half stays free, for the ids that follow in this millisecond.
        count = bytes.readUInt16BE(8) & (LAST_COUNT >> 1);
      } else if (count < LAST_COUNT) {
        count += 1;
      } else {
        time += 1;
        count = 0;
      }
      return toUuid(time, count, bytes);
    },
  };
}

/** Milliseconds inside a UUIDv7, or undefined for text that is none. */
export function timeOf(id: string): Millis | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id)
    ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    : undefined;
}

function toUuid(time: Millis, count: number, tail: Buffer): string {
  tail[0] = ((tail[0] ?? 0) & 0x3f) | 0x80;
  const head = time.toString(16).padStart(12, '0');
  const rest = tail.toString('hex', 0, 8);
  const middle = (0x7000 | count).toString(16);
  return `${head.slice(0, 8)}-${head.slice(8)}-${middle}-${rest.slice(0, 4)}-${rest.slice(4)}`;
}

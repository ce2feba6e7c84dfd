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
  /** The same in hex, two digits a byte. */
  let digits = Buffer.alloc(0);
  let at = 0;
  const draw = (): void => {
    at += BYTES;
    if (at + BYTES <= drawn.length) return;
    drawn = Buffer.from(random(BYTES * AHEAD));
    digits = Buffer.from(drawn.toString('hex'), 'latin1');
    at = 0;
  };
  /** Every id is written here, over the one before: most share their time with it. */
  const text = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1');
  let written = 0;
  return {
    next: () => {
      const now = Math.floor(clock.now());
      draw();
      if (now > time || now < time - BRIDGED) {
        time = now;
        // The upper half stays free, for the ids that follow in this millisecond.
        count = drawn.readUInt16BE(at + 8) & (LAST_COUNT >> 1);
      } else if (count < LAST_COUNT) {
        count += 1;
      } else {
        time += 1;
        count = 0;
      }
      if (time !== written) text.write(toHead(time), 'latin1');
      written = time;
      for (let digit = 0; digit < 3; digit += 1) text[15 + digit] = HEX.charCodeAt((count >> (8 - 4 * digit)) & 15);
      text[19] = VARIANTS.charCodeAt(((drawn[at] ?? 0) >> 4) & 3);
      digits.copy(text, 20, 2 * at + 1, 2 * at + 4);
      digits.copy(text, 24, 2 * at + 4, 2 * at + 16);
      return text.toString('latin1');
    },
  };
}

/** Milliseconds inside a UUIDv7, or undefined for text that is none. */
export function timeOf(id: string): Millis | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id)
    ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    : undefined;
}

/** 48 bits of time. */
function toHead(time: Millis): string {
  const digits = time.toString(16).padStart(12, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}

const HEX = '0123456789abcdef';
/** The first two bits are 10 (RFC 9562, 4.1). */
const VARIANTS = '89ab';

// Our ids: UUIDv7 (RFC 9562), whose time can be read back.
import type { Clock } from '#core/ports/clock.ts';
import type { Ids } from '#core/ports/ids.ts';
import type { Millis } from '#core/ports/money.ts';
import type { Random } from '#core/ports/platform.ts';

/** Hex digits of randomness in an id, and bytes drawn together: a draw costs more than the rest of an id. */
const DIGITS = 20;
const DRAWN = 1_000;

/** Each id has the clock's millisecond, also after the clock was set back, and 74 random bits. */
export function createIds({ clock, random }: { readonly clock: Clock; readonly random: Random }): Ids {
  let drawn = '';
  return {
    next: () => {
      if (drawn.length < DIGITS) drawn = Buffer.from(random(DRAWN)).toString('hex');
      const digits = drawn.slice(0, DIGITS);
      drawn = drawn.slice(DIGITS);
      const time = Math.floor(clock.now()).toString(16).padStart(12, '0');
      // The first two bits behind the third hyphen are 10 (RFC 9562, 4.1).
      const variant = '89ab'[Number.parseInt(digits[19] ?? '0', 16) & 3];
      const random12 = digits.slice(6, 18);
      return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(0, 3)}-${variant}${digits.slice(3, 6)}-${random12}`;
    },
  };
}

/** Milliseconds inside a UUIDv7, or undefined for text that is none. */
export function timeOf(id: string): Millis | undefined {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.test(id)
    ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    : undefined;
}

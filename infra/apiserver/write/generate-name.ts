// Which name does `generateName` lead to?
import { randomInt } from 'node:crypto';

const letters = 'bcdfghjklmnpqrstvwxz2456789';

/** The base, cut to 58 characters, and five more that spell no words. */
export function generatedName(base: string): string {
  return base.slice(0, 58) + Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('');
}

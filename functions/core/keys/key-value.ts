// Key values: `sk-`, 32 random bytes in base62, and a checksum (DESIGN 6).

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PREFIX = 'sk-';
const BODY_LENGTH = 43;
const CHECK_LENGTH = 6;
const FORM = /^sk-[0-9A-Za-z]{49}$/;

/** A new key value from 32 random bytes. It is never logged, and stored only in the key's own Secret. */
export function toKeyValue(random: Uint8Array): string {
  if (random.length !== 32) throw new Error(`a key value needs 32 random bytes, not ${random.length}`);
  let left = random.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  let digits = '';
  for (; left > 0n; left /= 62n) digits = ALPHABET.charAt(Number(left % 62n)) + digits;
  const body = digits.padStart(BODY_LENGTH, '0');
  return PREFIX + body + checksum(body);
}

/**
 * Whether the text has the form of a key value, with the right checksum. Any other text is no key value, and needs no
 * look-up.
 */
export function isKeyValue(text: string): boolean {
  return FORM.test(text) && text.endsWith(checksum(text.slice(PREFIX.length, -CHECK_LENGTH)));
}

/** CRC-32 (ISO 3309) in base62. It detects typing errors, and helps to find key values in texts; it proves nothing. */
export function checksum(body: string): string {
  let crc = 0xffffffff;
  for (let index = 0; index < body.length; index += 1) {
    crc = (CRC_TABLE[(crc ^ body.charCodeAt(index)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  let digits = '';
  for (let left = (crc ^ 0xffffffff) >>> 0; digits.length < CHECK_LENGTH; left = Math.floor(left / 62)) {
    digits = ALPHABET.charAt(left % 62) + digits;
  }
  return digits;
}

/** The remainder of each byte. A table, because every request is checked. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

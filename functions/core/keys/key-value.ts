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
  if (!FORM.test(text)) return false;
  const end = text.length - CHECK_LENGTH;
  let written = 0;
  for (let at = end; at < text.length; at += 1) written = written * 62 + (VALUES[text.charCodeAt(at)] ?? 0);
  return written === crcOf(text, PREFIX.length, end);
}

/** CRC-32 (ISO 3309) in base62. It detects typing errors, and helps to find key values in texts; it proves nothing. */
export function checksum(body: string): string {
  let digits = '';
  for (let left = crcOf(body, 0, body.length); digits.length < CHECK_LENGTH; left = Math.floor(left / 62)) {
    digits = ALPHABET.charAt(left % 62) + digits;
  }
  return digits;
}

/** The CRC-32 of a part of the text. A loop without new texts, because every request is checked. */
function crcOf(text: string, from: number, to: number): number {
  let crc = 0xffffffff;
  for (let at = from; at < to; at += 1) {
    crc = (CRC_TABLE[(crc ^ text.charCodeAt(at)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** The value of each character in base62. */
const VALUES = Uint8Array.from({ length: 128 }, (_, unit) => Math.max(0, ALPHABET.indexOf(String.fromCharCode(unit))));

/** The remainder of each byte. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

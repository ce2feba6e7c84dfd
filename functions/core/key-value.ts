// Key values: `sk-`, 32 random bytes in base62, and a checksum (DESIGN 6).

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 43;
const CHECK_LENGTH = 6;

/** A new key value from 32 random bytes. Never logged, never stored but in the key's own Secret. */
export function toKeyValue(random: Uint8Array): string {
  if (random.length !== 32) throw new Error(`a key takes 32 random bytes, got ${random.length}`);
  const body = base62(
    random.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n),
    BODY_LENGTH,
  );
  return `sk-${body}${checksum(body)}`;
}

function base62(value: bigint, length: number): string {
  let digits = '';
  for (let left = value; left > 0n; left /= 62n) digits = ALPHABET.charAt(Number(left % 62n)) + digits;
  return digits.padStart(length, '0');
}

/** CRC-32 (ISO 3309) in base62: detects typing errors and finds keys in texts, proves nothing. */
export function checksum(body: string): string {
  let crc = 0xffffffff;
  for (let index = 0; index < body.length; index += 1) {
    crc ^= body.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return base62(BigInt((crc ^ 0xffffffff) >>> 0), CHECK_LENGTH);
}

// Key values: `sk-`, 32 random bytes in base62, and a checksum (DESIGN 6).

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY_LENGTH = 43;
const CHECK_LENGTH = 6;

/** A new key value from 32 random bytes. Never logged, never stored but in the key's own Secret. */
export function toKeyValue(random: Uint8Array): string {
  if (random.length !== 32) throw new Error(`a key takes 32 random bytes, got ${random.length}`);
  const body = base62(random).padStart(BODY_LENGTH, '0');
  return `sk-${body}${checksum(body)}`;
}

function base62(bytes: Uint8Array): string {
  let value = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  let digits = '';
  while (value > 0n) {
    digits = ALPHABET.charAt(Number(value % 62n)) + digits;
    value /= 62n;
  }
  return digits;
}

/** CRC-32 (ISO 3309) in base62: detects typing errors and finds keys in texts, proves nothing. */
export function checksum(body: string): string {
  let crc = 0xffffffff;
  for (let index = 0; index < body.length; index += 1) {
    crc ^= body.charCodeAt(index);
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  let value = (crc ^ 0xffffffff) >>> 0;
  let digits = '';
  for (let index = 0; index < CHECK_LENGTH; index += 1) {
    digits = ALPHABET.charAt(value % 62) + digits;
    value = Math.floor(value / 62);
  }
  return digits;
}

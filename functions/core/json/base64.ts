// Base64 of UTF-8 text, the form of values in Secrets.
import { fromUtf8, toUtf8 } from './bytes.ts';

export const fromBase64 = (base64: string): string => fromUtf8(bytesFromBase64(base64));

export function bytesFromBase64(base64: string): Uint8Array {
  const characters = atob(base64);
  const bytes = new Uint8Array(characters.length);
  // A loop: `Uint8Array.from` takes 100 ms for a large Secret, twenty times as long.
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = characters.charCodeAt(at);
  return bytes;
}

export function toBase64(text: string): string {
  const bytes = toUtf8(text);
  let characters = '';
  // In pieces: a function takes at most some 100,000 arguments.
  for (let at = 0; at < bytes.length; at += PIECE) characters += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  return btoa(characters);
}

const PIECE = 8192;

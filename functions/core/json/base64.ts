// Base64 of UTF-8 text, as the data of Secrets has it.

export function decode(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (character) => character.charCodeAt(0)));
}

export function encode(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

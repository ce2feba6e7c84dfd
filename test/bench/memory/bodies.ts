// Bodies of the largest accepted size, by what is in them: their texts take one or two bytes a character, their values
// many times their bytes.

export const LARGEST = 32 * 1024 * 1024;

export type Content = keyof typeof CONTENTS;

/** Messages of a conversation, in about so many bytes. */
export const CONTENTS = {
  /** An image in base64, say. */
  'one text': (bytes: number) => message('"', 'x'.repeat(bytes)),
  /** A letter beyond Latin-1 makes the engine keep two bytes a character. */
  'one text with 한': (bytes: number) => message('"한', 'x'.repeat(bytes)),
  'many short parts': (bytes: number) => {
    const part = '{"type":"text","text":"x"},';
    return `{"role":"user","content":[${part.repeat(Math.min(Math.floor(bytes / part.length), 120_000)).slice(0, -1)}]}`;
  },
  'parts of 64 bytes': (bytes: number) => {
    const part = `{"type":"text","text":"${'x'.repeat(Math.ceil(bytes / 120_000))}한"},`;
    return `{"role":"user","content":[${part.repeat(Math.floor(bytes / (part.length + 2))).slice(0, -1)}]}`;
  },
} as const;

function message(begin: string, text: string): string {
  return `{"role":"user","content":${begin}${text}"}`;
}

/** The body of a chat completion, just below `bytes`. */
export function bodyOf(model: string, content: Content, bytes = LARGEST): Buffer {
  const rest = 200;
  return Buffer.from(`{"model":"${model}","max_tokens":10,"messages":[${CONTENTS[content](bytes - rest)}]}`);
}

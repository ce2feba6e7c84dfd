// Media of a prompt: the maximum tokens of images, documents, audio and videos, before a provider has counted them
// (LEDGER 9).

/** The largest known context window: the maximum of a prompt to which the provider adds stored state. */
export const LARGEST_WINDOW = 1_050_000;
/**
 * Images by dialect. OpenAI's dialect has no bound: gpt-4o-mini bills up to 48,000 tokens. Anthropic scales images
 * down, to 4,784 tokens for its finest models (platform.claude.com/docs/en/build-with-claude/vision).
 */
export const IMAGE = {
  openai: { isFile: false, tokens: 100_000, tokensTranslated: 8_000 },
  anthropic: { isFile: false, tokens: 8_000, tokensTranslated: 100_000 },
} as const;
/** The usual tokens of an image or a file, for rates and for free counts. */
export const USUAL_MEDIA = 1_000;
/** The minimum length of an encoded file; shorter texts are names of files. */
const MIN_ENCODED = 256;

/** An image, a document, an audio file or a video. */
export interface Medium {
  readonly isFile: boolean;
  /**
   * The maximum tokens: of an image in the client's dialect (`tokensTranslated`: in the other dialect); of a file if
   * the model's window is unknown.
   */
  readonly tokens: number;
  readonly tokensTranslated: number;
}

/** A document, an audio file or a video in these encoded parts; absent: the provider has it, or reads it from an address. */
export function fileIn(encoded: ReadonlyArray<string> = []): Medium {
  const isHere = encoded.length > 0 && encoded.every((text) => isData(text) || isBase64(text));
  const bytes = encoded.reduce((sum, text) => sum + Math.ceil((text.length * 3) / 4), 0);
  const tokens = isHere ? Math.min(bytes, LARGEST_WINDOW) : LARGEST_WINDOW;
  return { isFile: true, tokens, tokensTranslated: tokens };
}

const DATA = /^\s*data:/i;
const IMAGE_DATA = /^\s*data:image\//i;
const NO_IMAGE = /\.(pdf|mp3|wav|flac|aac|m4a|ogg|opus|mp4|mov|webm|mpe?g|avi|3gpp?)([?#]|$)/i;

/** Whether the address may be of an image: some providers also accept documents, audio and videos there. */
export function isImageAddress(address: string): boolean {
  return DATA.test(address) ? IMAGE_DATA.test(address) : !NO_IMAGE.test(address);
}

const isData = (text: string): boolean => /^\s*data:[^,]{0,256};base64,/i.test(text);
/** Whether a text is base64: an address has a colon near its beginning. */
const isBase64 = (text: string): boolean => text.length >= MIN_ENCODED && !text.slice(0, MIN_ENCODED).includes(':');

/** All media of a prompt: sums of their tokens, and how many there are. */
export interface Media {
  readonly count: number;
  readonly files: number;
  readonly images: Pick<Medium, 'tokens' | 'tokensTranslated'>;
  readonly fileTokens: number;
}

export const NO_MEDIA: Media = { count: 0, files: 0, images: { tokens: 0, tokensTranslated: 0 }, fileTokens: 0 };

export function addMedium(
  { count, files, images, fileTokens }: Media,
  { isFile, tokens, tokensTranslated }: Medium,
): Media {
  if (isFile) return { count: count + 1, files: files + 1, images, fileTokens: fileTokens + tokens };
  const more = { tokens: images.tokens + tokens, tokensTranslated: images.tokensTranslated + tokensTranslated };
  return { count: count + 1, files, images: more, fileTokens };
}

/**
 * The maximum tokens of media. `window`: the context window of the model, if it bounds a prompt. Each file may fill it.
 */
export function mediaTokens(
  { files, images, fileTokens }: Media,
  { isTranslated, window }: { readonly isTranslated: boolean; readonly window: bigint | undefined },
): bigint {
  if (files === 0 && images.tokens === 0) return 0n;
  const ofImages = BigInt(isTranslated ? images.tokensTranslated : images.tokens);
  return ofImages + (window === undefined ? BigInt(fileTokens) : window * BigInt(files));
}

// Tokens at higher rates, in a prompt or an answer. If a usage does not count them separately, all its tokens are
// charged at the higher rates.
import { member, textOf } from '#core/json/json.ts';
import type { Usage } from '#core/money/usage.ts';
import { type PromptSize, partsOf } from './prompt.ts';
import { foldName, spellingsOf } from './unmetered-features.ts';

export interface HigherRates {
  /** The client requests an hour in the cache for a part of the prompt. */
  readonly hourInCache: boolean;
  /** The prompt may contain audio, also of a video. */
  readonly mayHaveAudio?: boolean;
  /** The prompt, with its images. */
  readonly input: Pick<PromptSize, 'media'>;
}

const HOUR = new RegExp(String.raw`"${spellingsOf('ttl')}"\s*:\s*"${spellingsOf('1h')}"`, 'i');

/** Whether a body requests an hour in the cache. The text is searched, because the mark may be on any part. */
export function asksForHourInCache(text: string): boolean {
  return HOUR.test(text);
}

/** Members that contain audio, which are also types of such parts. */
const AUDIO_MEMBERS: ReadonlySet<unknown> = new Set(['input_audio', 'audio_url', 'input_video', 'video_url']);
const FOLDED_AUDIO_MEMBERS: ReadonlySet<string> = new Set([...AUDIO_MEMBERS].map((name) => foldName(`${name}`)));
/** Names of nearly all members: these need no folding. */
const USUAL_NAMES: ReadonlySet<string> = new Set(['type', 'text', 'image_url', 'cache_control']);
/** Members that may contain any media. */
const ADDRESSES = ['url', 'data', 'file_data'];
const MEDIA = ['image_url', 'file', 'video', 'audio'];
const DATA = /^\s*data:/i;
const AUDIO_DATA = /^\s*data:(audio|video)\//i;
const AUDIO_FILE = /\.(mp3|wav|flac|aac|m4a|ogg|opus|mp4|mov|webm|mpe?g|avi|3gpp?)([?#]|$)/i;

/** Whether messages of a chat may contain audio. */
export function hasAudio(messages: ReadonlyArray<unknown>): boolean {
  const left = [...messages];
  while (left.length > 0) {
    for (const part of partsOf(member(left.pop(), 'content'))) {
      if (isAudioPart(part)) return true;
      if (partsOf(member(part, 'content')).length > 0) left.push(part);
    }
  }
  return false;
}

function isAudioPart(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false;
  if (AUDIO_MEMBERS.has(member(part, 'type'))) return true;
  for (const name of Object.keys(part))
    if (!USUAL_NAMES.has(name) && FOLDED_AUDIO_MEMBERS.has(foldName(name))) return true;
  return MEDIA.some((name) => {
    const media = member(part, name);
    return (
      media !== undefined &&
      (isAudioAddress(media) || ADDRESSES.some((address) => isAudioAddress(member(media, address))))
    );
  });
}

function isAudioAddress(address: unknown): boolean {
  const text = textOf(address);
  return text !== undefined && (DATA.test(text) ? AUDIO_DATA : AUDIO_FILE).test(text);
}

/** The usage at the rates of the request: tokens that it does not count separately get the higher rate. */
export function toHigherRates(usage: Usage, { hourInCache, mayHaveAudio = false, input }: HigherRates): Usage {
  const isLong = hourInCache && usage.cacheWrite > 0 && usage.cacheWriteLong === undefined;
  // Uncounted media already has the highest rate.
  const isUncounted = usage.inputMedia !== undefined;
  const isAudio = mayHaveAudio && !isUncounted && usage.inputAudio === undefined;
  const isImage = input.media.images.tokens > 0 && !isUncounted && !isAudio && usage.inputImage === undefined;
  if (!isLong && !isAudio && !isImage) return usage;
  return {
    ...usage,
    ...(isLong ? { cacheWriteLong: usage.cacheWrite } : {}),
    ...(isAudio ? { inputAudio: usage.input, cachedAudio: usage.cachedInput } : {}),
    ...(isImage ? { inputImage: usage.input, cachedImage: usage.cachedInput } : {}),
  };
}

/** The usage of an answer with images or audio: all output counts as media, unless one kind is counted separately. */
export function withOutputMedia(usage: Usage): Usage {
  const isCounted = usage.outputAudio !== undefined || usage.outputImage !== undefined;
  return isCounted ? usage : { ...usage, outputMedia: usage.output };
}

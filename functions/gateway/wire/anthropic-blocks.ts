// How do the parts of a message (texts, pictures, files) read as Anthropic's content blocks?
import { listOf, member, textOf } from './json.ts';

/** Says what in the request has no words there. The first one told is what the client hears. */
export type Refuse = (param: string, message: string) => void;

/** `data:image/png;base64,…`; group 1 the media type, 2 the bytes. */
const DATA_URL = /^data:([^;,]+);base64,(.*)$/s;

/** The blocks of a message's content. Empty texts are left out: they would be refused there. */
export function toBlocks(message: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  const content = member(message, 'content');
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return toText(content, undefined);
  if (!Array.isArray(content)) refuse(`${at}.content`, 'must be a text or an array of parts.');
  return listOf(content).flatMap((part, index) => toBlock(part, `${at}.content[${index}]`, refuse));
}

function toBlock(part: unknown, at: string, refuse: Refuse): ReadonlyArray<object> {
  switch (member(part, 'type')) {
    case 'text':
      return toText(textOf(member(part, 'text')) ?? '', part);
    case 'refusal':
      return toText(textOf(member(part, 'refusal')) ?? '', part);
    case 'image_url':
      return [{ type: 'image', source: toImage(member(part, 'image_url'), at, refuse), ...cacheOf(part) }];
    case 'file':
      return [{ type: 'document', source: toFile(member(part, 'file'), at, refuse), ...cacheOf(part) }];
    default:
      refuse(`${at}.type`, 'must be text, image_url or file for this model.');
      return [];
  }
}

function toText(text: string, part: unknown): ReadonlyArray<object> {
  return text === '' ? [] : [{ type: 'text', text, ...cacheOf(part) }];
}

function toImage(image: unknown, at: string, refuse: Refuse): object | undefined {
  const url = textOf(image) ?? textOf(member(image, 'url')) ?? '';
  const source = toBase64(url);
  if (source === undefined && !/^https?:\/\//i.test(url)) {
    refuse(`${at}.image_url.url`, 'must be an http address or a base64 data URL for this model.');
  }
  return source ?? { type: 'url', url };
}

function toFile(file: unknown, at: string, refuse: Refuse): object | undefined {
  const source = toBase64(textOf(member(file, 'file_data')) ?? '');
  if (source === undefined) refuse(`${at}.file.file_data`, 'must be a base64 data URL for this model.');
  return source;
}

function toBase64(url: string): object | undefined {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  return data === undefined ? undefined : { type: 'base64', media_type: mediaType, data };
}

/** A mark of Anthropic's own, which clients set on parts: up to here the prompt is kept in the cache. */
function cacheOf(part: unknown): object {
  const mark = member(part, 'cache_control');
  return mark === undefined || mark === null ? {} : { cache_control: mark };
}

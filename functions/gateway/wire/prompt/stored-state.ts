// Stored state: responses, items and files at a provider that a request refers to (decision 0034).
import { isObject } from '#core/json/json.ts';

/** The stored state that a request refers to. */
export interface StoredState {
  /** The client asks the provider to store the response. */
  readonly asksToStore: boolean;
  /** The parameter of the first reference to a response or an item; absent: none. */
  readonly reference?: string | undefined;
  /** The parameter of the first reference without a mark; absent: none. */
  readonly unmarkedReference?: string | undefined;
  /** The parameter that refers to a file of the account; its VirtualKey is unknown. */
  readonly file?: string | undefined;
  /** The parameter that refers to speech of an earlier answer. */
  readonly speech?: string | undefined;
  /** The ids whose marks were removed from the body. */
  readonly ids: ReadonlyArray<MarkedId>;
}

/** The provider's id of a response or an item, and its mark. */
export interface MarkedId {
  readonly id: string;
  /** The parameter that contains the id. */
  readonly param: string;
  /** The mark of the model entry. */
  readonly modelEntryMark: string;
  /** Binds the id to the VirtualKey that got it. */
  readonly mac: string;
}

export const NOTHING_STORED: StoredState = { asksToStore: false, ids: [] };

/** Members that name a file at the provider, or an image in the memory of its process (vLLM). */
const NAMES: ReadonlySet<string> = new Set(['file_id', 'fileId', 'uuid']);
/** Members with the address of an image, an audio file or another file. */
const ADDRESSES: ReadonlySet<string> = new Set([
  'url',
  'uri',
  'file_url',
  'image_url',
  'audio_url',
  'video_url',
  'document_url',
  'file_data',
  'data',
]);
/**
 * The form of an address that is neither on the web nor the content itself: a bucket (`gs:`), a file of the server, an
 * uploaded file (`ms:`).
 */
const NOT_ON_THE_WEB = /^\s*(?!https?:|data:)[a-z][a-z0-9+.-]{0,31}:/i;

/**
 * Whether a part of a prompt, or the object with its media, refers to a file that the provider reads with the rights of
 * the account.
 */
export function refersToFile(holder: unknown): boolean {
  if (!isObject(holder) || Array.isArray(holder)) return false;
  // Parts have few members, and a request may have very many parts: each part's own names are looked up in the sets.
  for (const name of Object.keys(holder)) {
    const value = holder[name];
    if (NAMES.has(name) ? value !== null : typeof value === 'string' && ADDRESSES.has(name) && isNotOnTheWeb(value))
      return true;
  }
  return false;
}

const isNotOnTheWeb = (address: string): boolean => NOT_ON_THE_WEB.test(address);

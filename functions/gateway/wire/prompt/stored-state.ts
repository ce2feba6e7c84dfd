// Stored state: what a request refers to that its provider has kept, and not the request itself (decision 34).
import { member, textOf } from '#core/json/json.ts';

/** Of a request. */
export interface StoredState {
  /** The client asks the provider to keep the response. */
  readonly asksToStore: boolean;
  /** The parameter of the first reference to a response or an item; absent: there is none. */
  readonly reference?: string | undefined;
  /** The same of the first one without a mark. */
  readonly unmarkedReference?: string | undefined;
  /** The parameter that refers to a file of the account, whose VirtualKey nothing shows. */
  readonly file?: string | undefined;
  /** The parameter that refers to speech of an earlier answer. */
  readonly speech?: string | undefined;
  /** Ids whose marks were taken out of the body. */
  readonly ids: ReadonlyArray<MarkedId>;
}

/** The id of a response or an item, as its provider knows it, and its mark. */
export interface MarkedId {
  readonly id: string;
  /** The parameter that it was found in. */
  readonly param: string;
  /** The mark of the entry. */
  readonly entryMark: string;
  /** Binds the id to the VirtualKey that got it. */
  readonly mac: string;
}

export const NOTHING_STORED: StoredState = { asksToStore: false, ids: [] };

/** Members that name a file which the provider keeps, or a picture that its process remembers (vLLM). */
const NAMES = ['file_id', 'fileId', 'uuid'];
/** Members with the address of a picture, a sound or a file. */
const ADDRESSES = [
  'url',
  'uri',
  'file_url',
  'image_url',
  'audio_url',
  'video_url',
  'document_url',
  'file_data',
  'data',
];
/**
 * An address that is neither on the web nor the content itself: a bucket (`gs:`), a file of the server, an uploaded
 * file (`ms:`).
 */
const NOT_ON_THE_WEB = /^\s*(?!https?:|data:)[a-z][a-z0-9+.-]{0,31}:/i;

/**
 * Whether a part of a prompt, or the object in it that holds its media, refers to a file that the provider reads with
 * the account's rights.
 */
export function refersToFile(holder: unknown): boolean {
  if (typeof holder !== 'object' || holder === null) return false;
  if (NAMES.some((name) => (member(holder, name) ?? undefined) !== undefined)) return true;
  return ADDRESSES.some((name) => isNotOnTheWeb(textOf(member(holder, name))));
}

const isNotOnTheWeb = (address: string | undefined): boolean => address !== undefined && NOT_ON_THE_WEB.test(address);

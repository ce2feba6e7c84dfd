// Marks on state that only one account can read: ids of responses and items, and encrypted reasoning. Clients send both
// back.

import { toUtf8 } from '#core/json/bytes.ts';
import { listOf, member, textOf } from '#core/json/json.ts';
import { copyOf } from '#core/json/text.ts';
import type { ReplyOptions } from '../codec.ts';
import { elementsOf, type Member, membersOf, type ObjectText, unquote } from '../json/json-splice.ts';
import type { MarkedId } from '../prompt/stored-state.ts';
import type { RequestBody } from '../request.ts';

const ENCRYPTED = /("encrypted_content"\s*:\s*"[^"\\]+)"/g;
const IDS = /("(?:id|item_id|previous_response_id)"\s*:\s*")([^"\\]+)"/g;
/**
 * A mark at the end of a value: the mark of the model entry; after an id also the MAC that binds the id to a
 * VirtualKey.
 */
const MARK = /^\.gw([0-9a-f]{8})$/;
const BOUND_MARK = /^\.gw([0-9a-f]{8})([0-9a-f]{32})$/;
const LENGTH = '.gw'.length + 8;
const BOUND_LENGTH = LENGTH + 32;
/** A pattern that every body with a mark matches, however its letters are escaped. */
const MAYBE_MARKED = /\.gw|\\u/;

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * An event with marks on its ids and on encrypted reasoning; the same bytes if it has neither. `event`: the parsed
 * bytes; of a whole reply, `{"response"}`.
 */
export function mark(
  bytes: Uint8Array,
  event: unknown,
  { modelEntryMark, markId }: Pick<ReplyOptions, 'modelEntryMark' | 'markId'>,
): Uint8Array {
  if (modelEntryMark === undefined && markId === undefined) return bytes;
  const text = decoder.decode(bytes);
  const sealed = modelEntryMark === undefined ? text : text.replaceAll(ENCRYPTED, `$1.gw${modelEntryMark}"`);
  const marked = markId === undefined ? sealed : withIds(sealed, idsIn(event), markId);
  return marked === text ? bytes : toUtf8(marked);
}

function withIds(text: string, ids: ReadonlySet<string>, markId: (id: string) => string): string {
  return text.replaceAll(IDS, (whole, name: string, id: string) => (ids.has(id) ? `${name}${markId(id)}"` : whole));
}

/** The ids in an event with which later requests may refer to stored state. */
function idsIn(event: unknown): ReadonlySet<string> {
  const response = member(event, 'response');
  const items = [member(event, 'item'), response, ...listOf(member(response, 'output'))];
  const ids = [
    member(event, 'item_id'),
    member(response, 'previous_response_id'),
    ...items.map((item) => member(item, 'id')),
  ];
  return new Set(ids.flatMap((id) => textOf(id) ?? []));
}

/** A body without marks, as the provider gets it. */
export interface UnmarkedBody {
  readonly bytes: Uint8Array;
  /** The mark of the model entry that created the marked parts. */
  readonly modelEntryMark: string;
  readonly ids: ReadonlyArray<MarkedId>;
}

/** The body without its marks; undefined: it has none. */
export function unmark({ text, object }: Pick<RequestBody, 'text' | 'object'>): UnmarkedBody | undefined {
  if (!MAYBE_MARKED.test(text)) return undefined;
  const ids = new Map<string, MarkedId>();
  let by: string | undefined;
  let unmarked = '';
  let from = 0;
  for (const { name, valueStart, end } of placesIn(text, object)) {
    if (!text.startsWith('"', valueStart)) continue;
    const quoted = text.slice(valueStart, end);
    const isEscaped = quoted.includes('\\');
    const value = isEscaped ? unquote(quoted) : quoted.slice(1, -1);
    const length = name === 'encrypted_content' ? LENGTH : BOUND_LENGTH;
    const found = (length === LENGTH ? MARK : BOUND_MARK).exec(value.slice(-length));
    if (found === null || value.length === length) continue;
    const [, entry = '', mac] = found;
    const id = value.slice(0, -length);
    if (mac !== undefined) {
      const param = name === 'id' ? 'input' : name;
      ids.set(copyOf(value), { id: copyOf(id), modelEntryMark: entry, mac: copyOf(mac), param });
    }
    by = entry;
    // A body may have very many marks: most are cut out of the text as they are.
    unmarked += isEscaped ? text.slice(from, valueStart) + JSON.stringify(id) : text.slice(from, end - 1 - length);
    from = isEscaped ? end : end - 1;
  }
  return by === undefined
    ? undefined
    : { bytes: toUtf8(unmarked + text.slice(from)), modelEntryMark: by, ids: [...ids.values()] };
}

/** The members of a request that may have a mark, in the order of the text. Other members belong to the client. */
function* placesIn(text: string, { members }: ObjectText): Generator<Member> {
  for (const member of members) {
    if (member.name === 'previous_response_id') yield member;
    if (member.name !== 'input') continue;
    for (const start of elementsOf(text, member.valueStart))
      for (const one of membersOf(text, start).members)
        if (one.name === 'encrypted_content' || one.name === 'id') yield one;
  }
}

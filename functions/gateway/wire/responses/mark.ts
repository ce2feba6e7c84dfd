// Marks of entries on what only their accounts can read: ids of responses, and encrypted reasoning. Clients send both back.

import { parseJson, textOf } from '#core/json.ts';
import { elementsOf, type Member, membersOf, type ObjectText } from '../json-splice.ts';
import type { ModelRequest } from '../request.ts';

const ENCRYPTED = /("encrypted_content"\s*:\s*"[^"\\]+)"/g;
/** A mark, and its place at the end of a value. */
const MARK = /^\.gw([0-9a-f]{8})$/;
const MARK_LENGTH = 11;
/** A body without these has no mark, however its letters are escaped. */
const MAYBE_MARKED = /\.gw|\\u/;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The reply, or an event of it, with this mark on the response's id and on encrypted reasoning; the same bytes where it has neither. */
export function mark(bytes: Uint8Array, id: string | undefined, by: string): Uint8Array {
  const text = decoder.decode(bytes);
  const sealed = text.replaceAll(ENCRYPTED, `$1.gw${by}"`);
  const marked =
    id === undefined || id === ''
      ? sealed
      : sealed.replaceAll(JSON.stringify(id), () => JSON.stringify(`${id}.gw${by}`));
  return marked === text ? bytes : encoder.encode(marked);
}

/** The body as the entry's account knows it, and the entry's mark; undefined where it has none. */
export function unmark({
  text,
  object,
}: Pick<ModelRequest, 'text' | 'object'>): { readonly bytes: Uint8Array; readonly by: string } | undefined {
  if (!MAYBE_MARKED.test(text)) return undefined;
  let by: string | undefined;
  let unmarked = '';
  let from = 0;
  for (const { valueStart, end } of placesIn(text, object)) {
    const value = textOf(parseJson(text.slice(valueStart, end))) ?? '';
    const found = MARK.exec(value.slice(-MARK_LENGTH))?.[1];
    if (found === undefined || value.length === MARK_LENGTH) continue;
    by = found;
    unmarked += text.slice(from, valueStart) + JSON.stringify(value.slice(0, -MARK_LENGTH));
    from = end;
  }
  return by === undefined ? undefined : { bytes: encoder.encode(unmarked + text.slice(from)), by };
}

/** The members of a request that may carry a mark, in the order of the text: others are the client's own. */
function placesIn(text: string, { members }: ObjectText): ReadonlyArray<Member> {
  return members.flatMap((member) => {
    if (member.name === 'previous_response_id') return [member];
    if (member.name !== 'input') return [];
    const items = elementsOf(text, member.valueStart).flatMap((start) => membersOf(text, start).members);
    return items.filter(({ name }) => name === 'encrypted_content');
  });
}

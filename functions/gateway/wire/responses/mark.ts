// Marks of entries on what only their accounts can read: ids of responses, and encrypted reasoning. Clients send both back.

const ENCRYPTED = /("encrypted_content"\s*:\s*"[^"\\]+)"/g;
/** The members of a request that carry a mark. A quote inside of a text is escaped, so these are names of members. */
const MARKED = /("(?:encrypted_content|previous_response_id)"\s*:\s*"[^"\\]+)\.gw([0-9a-f]{8})"/g;

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
export function unmark(text: string): { readonly bytes: Uint8Array; readonly by: string } | undefined {
  const [, , by] = [...text.matchAll(MARKED)].at(-1) ?? [];
  return by === undefined ? undefined : { bytes: encoder.encode(text.replaceAll(MARKED, '$1"')), by };
}

// Copies of parts of texts. A part itself would keep the whole text in memory.

/** The maximum characters of a part that the engine copies. A longer part is a view, which keeps the whole text. */
const MAX_COPY = 12;

/** The maximum characters of a server's message, or of a reason inside another reason. */
const MAX_REASON = 1024;

/** A copy of the part, which does not keep the whole text in memory. */
export function copyOf(part: string): string {
  return part.length > MAX_COPY ? ` ${part}`.slice(1) : part;
}

/** The text, or its beginning if it is longer than `max` characters. */
export function cutText(text: string, max = MAX_REASON): string {
  return text.length <= max ? text : copyOf(`${text.slice(0, max - 1)}…`);
}

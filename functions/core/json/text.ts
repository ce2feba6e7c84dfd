// Parts of texts, which do not keep the whole in memory.

/** Characters from which on the engine makes a part of a text a view, which keeps the whole text in memory. */
const MAX_COPY = 12;

/** Characters of what a server says, or of a reason within another reason. */
const MAX_REASON = 1024;

/** The same text, without the one that it is a part of. */
export function copyOf(part: string): string {
  return part.length > MAX_COPY ? ` ${part}`.slice(1) : part;
}

/** The text, or its beginning where it is longer than `max` characters. */
export function cutText(text: string, max = MAX_REASON): string {
  return text.length <= max ? text : copyOf(`${text.slice(0, max - 1)}…`);
}

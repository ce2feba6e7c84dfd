// Fields of a key in log lines: its names, tags and metadata, and the name of its user. People group lines by them.
import { toUtf8 } from '#core/json/bytes.ts';
import type { KeyPolicy, KeyRecord } from '#core/ports/policy.ts';

/** The maximum bytes of tags and metadata in a line. Every request writes a line, also a refused one. */
const MAX_LABELS = 4 * 1024;

/** Returns the fields of a record. They are created once, and kept as long as the record. */
export function createKeyFields(): (record: KeyRecord) => Readonly<Record<string, unknown>> {
  const known = new WeakMap<KeyRecord, Readonly<Record<string, unknown>>>();
  return (record) => {
    const before = known.get(record);
    if (before !== undefined) return before;
    const fields = toFields(record);
    known.set(record, fields);
    return fields;
  };
}

function toFields({ key, scopes }: KeyRecord): Readonly<Record<string, unknown>> {
  const { namespace, name } = key.object;
  const user = scopes.find(({ kind }) => kind === 'user');
  return {
    alias: key.name,
    key: `${namespace}/${name}`,
    ...(user !== undefined && { user: user.alias ?? user.name }),
    ...labelsOf(key),
  };
}

/** Tags and metadata; only the first of them if all together are too long, with `labelsCut`. */
function labelsOf({ tags, metadata }: KeyPolicy): object {
  let left = MAX_LABELS;
  const fits = (texts: string | readonly string[]): boolean => {
    left -= toUtf8(JSON.stringify(texts)).length;
    return left >= 0;
  };
  const shown = {
    ...(tags !== undefined && { tags: tags.filter(fits) }),
    ...(metadata !== undefined && { metadata: Object.fromEntries(Object.entries(metadata).filter(fits)) }),
  };
  return left < 0 ? { ...shown, labelsCut: true } : shown;
}

// Fields of a key in its log lines: names, tags and metadata that people gave it and its user, to group lines by.
import { toUtf8 } from '#core/json/bytes.ts';
import type { KeyPolicy, KeyRecord } from '#core/ports/policy.ts';

/** Bytes of a key's tags and metadata in a line, which every request has, also one that is refused. */
const MAX_LABELS = 4 * 1024;

/** Made once for each record, and kept as long as that. */
export function createKeyFields(): (record: KeyRecord) => Readonly<Record<string, unknown>> {
  const known = new WeakMap<KeyRecord, Readonly<Record<string, unknown>>>();
  return (record) => {
    const fields = known.get(record) ?? toFields(record);
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

/** Tags and metadata, the first of them where all are too long: `labelsCut` marks these. */
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

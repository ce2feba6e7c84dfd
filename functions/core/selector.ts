// How is a field selector written, whatever the values contain?

/** `a=b,c=d` for `list`, with the three characters that a field selector gives a meaning escaped. */
export function toFieldSelector(fields: Readonly<Record<string, string>>): string {
  return Object.entries(fields)
    .map(([field, value]) => `${field}=${value.replace(/[\\,=]/g, '\\$&')}`)
    .join(',');
}

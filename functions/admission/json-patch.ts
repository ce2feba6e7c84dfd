// How is a change of an object written as a JSON patch (RFC 6902)?
import { isMap, type Json } from '#crds/shapes.ts';

export type Operation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** The few operations that turn `before` into `after`. Lists are replaced as a whole. */
export function toPatch(before: Json, after: Json, path = ''): Operation[] {
  if (before === after) return [];
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return members.flatMap((member): Operation[] => {
    const here = `${path}/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const old = before[member];
    const value = after[member];
    if (old === value) return [];
    if (value === undefined) return [{ op: 'remove', path: here }];
    if (!Object.hasOwn(before, member)) return [{ op: 'add', path: here, value }];
    if (isMap(old) && isMap(value)) return toPatch(old, value, here);
    return JSON.stringify(old) === JSON.stringify(value) ? [] : [{ op: 'replace', path: here, value }];
  });
}

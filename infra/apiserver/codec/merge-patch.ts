// What does an RFC 7386 merge patch make of a value?
import { copyJson, fromEntries, isObject, type JsonObject, setMember } from '../schema/json.ts';

/** A copy of the target with the patch merged in: null removes, objects merge, everything else replaces. */
export function mergePatch(target: JsonObject, patch: JsonObject): JsonObject {
  const merged = fromEntries(Object.entries(target));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else if (isObject(value)) {
      const before = Object.hasOwn(merged, key) ? merged[key] : undefined;
      setMember(merged, key, mergePatch(isObject(before) ? before : {}, value));
    } else setMember(merged, key, copyJson(value));
  }
  return merged;
}

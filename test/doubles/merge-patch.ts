// An object after a JSON merge patch (RFC 7396), or after another server-side apply.

export type Json = Readonly<Record<string, unknown>>;

export const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 7396: null removes, objects merge, everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [member, value] of Object.entries(patch)) {
    if (value === null) delete merged[member];
    else merged[member] = mergePatch(merged[member], value);
  }
  return merged;
}

/**
 * Server-side apply by one forced manager: what it applied before and applies no longer goes, maps merge, lists
 * replace.
 */
export function applyOver(live: unknown, before: unknown, after: unknown): unknown {
  if (!isRecord(after)) return after;
  const merged: Record<string, unknown> = isRecord(live) ? { ...live } : {};
  if (isRecord(before)) for (const member of Object.keys(before)) if (!(member in after)) delete merged[member];
  for (const [member, value] of Object.entries(after)) {
    merged[member] = applyOver(merged[member], isRecord(before) ? before[member] : undefined, value);
  }
  return merged;
}

/** Deep equality of JSON values, whatever the order of members. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => sameJson(item, right[index]));
  }
  if (!isRecord(left) || !isRecord(right)) return false;
  const members = Object.keys(left).filter((member) => left[member] !== undefined);
  const others = Object.keys(right).filter((member) => right[member] !== undefined);
  return (
    members.length === others.length &&
    members.every((member) => Object.hasOwn(right, member) && sameJson(left[member], right[member]))
  );
}

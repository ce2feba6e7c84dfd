// Is this the same mistake in the same place as before, even when the list around it was reordered?
import type { Finding } from '#core/finding.ts';
import { isMap } from '#crds/shapes.ts';

/** Rule, value and place in one text, with list entries named by their key. */
export function identityOf({ rule, path, value }: Finding, spec: unknown): string {
  return JSON.stringify([rule, placeOf(path, spec), value ?? null]);
}

/** `spec.models[2].gatewayParams` → `spec.models{"gpt-4o"}.gatewayParams`: by `identifier`, `name`, or the entry itself. */
function placeOf(path: string, spec: unknown): string {
  let at: unknown = { spec };
  return path.replace(/\.?([A-Za-z][A-Za-z0-9]*)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/g, (step, member, index) => {
    if (index !== undefined && Array.isArray(at)) {
      at = at[Number(index)];
      const key = keyOf(at);
      return key === undefined ? step : `{${JSON.stringify(key)}}`;
    }
    at = isMap(at) && member !== undefined && Object.hasOwn(at, member) ? at[member] : undefined;
    return step;
  });
}

/** What tells entries apart in our lists; a bare `[i]` where nothing does. */
function keyOf(entry: unknown): unknown {
  if (!isMap(entry)) return entry;
  return entry.identifier ?? entry.name ?? entry.key;
}

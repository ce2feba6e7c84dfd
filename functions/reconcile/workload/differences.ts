// Is an object as we want it? Only what we say is compared: defaults, and what others added, are not ours.
import { isMap, type Json } from '#crds/shapes.ts';
import { isSameQuantity } from './quantity.ts';

export interface Difference {
  /** `spec.template.spec.containers[gateway].image`. */
  readonly path: string;
  /** What is there in place of what we want. */
  readonly live: unknown;
}

/** Members that name the items of a list. Lists without them are compared item by item. */
const NAMES = ['name', 'uid', 'mountPath'] as const;

/** Where quantities stand: the API server writes "0.5" as "500m". */
const QUANTITY = /\.resources\.(requests|limits)\./;

/** Pure. Empty: everything that `wanted` says is so; `null` wants nothing there. */
export function differences(live: unknown, wanted: unknown, path = ''): Difference[] {
  if (isMap(wanted)) {
    if (!isMap(live)) return Object.keys(wanted).length === 0 ? [] : [{ path, live }];
    return Object.entries(wanted).flatMap(([member, value]) =>
      differences(live[member], value, path === '' ? member : `${path}.${member}`),
    );
  }
  if (Array.isArray(wanted)) return inLists(live, wanted, path);
  const isSame = wanted === null || wanted === undefined ? live === undefined || live === null : live === wanted;
  return isSame || (QUANTITY.test(path) && isSameQuantity(live, wanted)) ? [] : [{ path, live }];
}

function inLists(live: unknown, wanted: readonly unknown[], path: string): Difference[] {
  const there: readonly unknown[] = Array.isArray(live) ? live : [];
  const key = NAMES.find((name) => wanted.length > 0 && wanted.every((item) => isMap(item) && name in item));
  if (key === undefined) {
    if (there.length !== wanted.length) return [{ path, live }];
    return wanted.flatMap((item, index) => differences(there[index], item, `${path}[${index}]`));
  }
  return (wanted as readonly Json[]).flatMap((item) =>
    differences(
      there.find((other) => isMap(other) && other[key] === item[key]),
      item,
      `${path}[${item[key]}]`,
    ),
  );
}

// Is an object good? The quick answer, for nearly all that are.
import { accepted } from './accepted.ts';
import type { Judged } from './judge.ts';
import type { KindResource } from './resources.ts';
import { isMap } from './shapes.ts';

/**
 * True only where `judge` finds nothing; where this is false, `judge` says what is wrong, if anything is (a null, an odd
 * stored object). Total, and without the schemas: a process that meets good objects only never loads them.
 */
export function isGood({ kind, nameRule }: KindResource, object: Judged, old?: Judged): boolean {
  const name = object.metadata?.name;
  if (nameRule !== undefined && name !== undefined && !nameRule.holds(name)) return false;
  if (old === undefined) return accepted[kind](object.spec);
  return isMap(old.spec) && accepted[kind](object.spec, old.spec);
}

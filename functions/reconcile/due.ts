// Which keys can have something to do? At first all; then those that had something, and those that a deed was about.
// A hundred thousand keys are planned once for their steps and once for their statuses, and a thousand that change again and again.
import type { Deed } from './act.ts';
import { isTold } from './action.ts';
import type { InstanceJudgement } from './plan/judge-instance.ts';
import { type InstanceView, type Path, pathOf, type World } from './world.ts';

export type Keys = 'all' | ReadonlySet<Path>;

/** Of all other keys it is known that they have no step to take, or that their status says what it should. */
export interface Due {
  readonly steps: Keys;
  readonly statuses: Keys;
  /** Keys that do not work, as far as `statuses` has looked at all of them. */
  readonly inactive: ReadonlySet<Path>;
}

export const EVERYTHING: Due = { steps: 'all', statuses: 'all', inactive: new Set() };

/** What keys see of the instances of a world: while it stays the same, deeds about instances concern no key. */
export type Sight = ReadonlyMap<Path, ReadonlyArray<unknown>>;

export function seenByKeys(world: World, judge: (view: InstanceView) => InstanceJudgement): Sight {
  return new Map(
    [...world.instances].map(([path, view]) => {
      const { object, database, claims, taken, gone, time, complete } = view;
      const { uid, generation, deletionTimestamp } = object.metadata;
      const opened = database.ok && database.opened;
      const judged = JSON.stringify([judge(view), view.servedAt ?? null, [...judge(view).served]]);
      return [path, [uid, generation, deletionTimestamp, opened, claims, taken, gone, time, complete, judged]];
    }),
  );
}

/** `planned`: what a plan left due. `before` and `after` what was done. */
export function dueAfter(planned: Due, deeds: ReadonlyArray<Deed>, before: Sight, after: Sight): Due {
  if (!isSame(before, after) || deeds.some(concernsOthers)) return EVERYTHING;
  const touched = deeds.flatMap(({ action }) => (action.kind === 'VirtualKey' ? [pathOf(action)] : []));
  return { ...planned, steps: more(planned.steps, touched), statuses: more(planned.statuses, touched) };
}

const more = (keys: Keys, touched: ReadonlyArray<Path>): Keys =>
  keys === 'all' ? keys : new Set([...keys, ...touched]);

/** What is done about a key changes that key alone. Who waits for its alias is due anyway. */
function concernsOthers({ action, ended }: Deed): boolean {
  if (action.kind === 'VirtualKey' || action.kind === 'GatewayInstance') return false;
  return !(isTold(action) && ended === 'done');
}

function isSame(before: Sight, after: Sight): boolean {
  if (before.size !== after.size) return false;
  return [...before].every(([path, seen]) => {
    const now = after.get(path);
    return now !== undefined && seen.every((one, index) => one === now[index]);
  });
}

// How often is the same action tried in one run?
import type { Action } from './action.ts';

/** So often, when somebody else was faster. */
const MOST_TRIES = 3;

export interface Tries {
  readonly isWorthTrying: (action: Action) => boolean;
  count(actions: ReadonlyArray<Action>): void;
  /** It failed: the next run tries it again. */
  end(action: Action): void;
}

/** Of one part of a run. An event is told once. */
export function createTries(): Tries {
  const tries = new Map<string, number>();
  const triesOf = (action: Action): number => tries.get(identify(action)) ?? 0;
  return {
    isWorthTrying: (action) => triesOf(action) < (action.action === 'RecordEvent' ? 1 : MOST_TRIES),
    count: (actions) => {
      for (const action of actions) tries.set(identify(action), triesOf(action) + 1);
    },
    end: (action) => tries.set(identify(action), MOST_TRIES),
  };
}

/** The same for the same step of the same object, whatever its details. */
export function identify(action: Action): string {
  return `${action.action} ${action.kind}/${action.namespace}/${action.name} ${detailOf(action)}`;
}

function detailOf(action: Action): string {
  if (action.action === 'RecordEvent') return action.once;
  if ('claim' in action) return action.claim;
  return 'part' in action ? action.part : '';
}

// Replies of the model: settled, and ended once the charge that the death of their process would cause covers them (LEDGER 1, 3).
import { isPlanted } from './flaws.ts';
import type { Go, Scene, State } from './state.ts';
import { at, figuresOf, requestsOf } from './sums.ts';

/** Providers return whether the process has an account or not. */
export function ofReplies(scene: Scene, state: State, who: number, go: Go): void {
  for (const of of requestsOf(scene, state, who, 'live')) {
    go(`${who} settles ${of}`, (to) => {
      const isEnded = isCovered(scene, to, who, of);
      Object.assign(at(to.requests, of), { stage: 'done', isEnded });
    });
    if (of === scene.requests.length - 1)
      go(`${who} releases ${of}`, (to) => {
        at(to.requests, of).stage = 'released';
      });
  }
  for (const of of requestsOf(scene, state, who, 'done', 'sent')) {
    const { isEnded, atSize } = at(state.requests, of);
    if (!isEnded && !atSize && isCovered(scene, state, who, of))
      go(`${who} ends the reply of ${of}`, (to) => {
        at(to.requests, of).isEnded = true;
      });
  }
}

/**
 * Whether this reply may end now. What the store has at risk must cover the figures of all replies that have ended untold, in each counter
 * that pays: of the last answered call, and of the one under way too, whose answer is unknown. Else the reply ends when its cost is told.
 */
function isCovered(scene: Scene, state: State, who: number, of: number): boolean {
  if (isPlanted(scene, 'a reply ends that no risk in the store covers')) return true;
  const { risk, pending } = at(state.processes, who);
  const untold = requestsOf(scene, state, who, 'done', 'sent').filter(
    (other) => other !== of && at(state.requests, other).isEnded,
  );
  const ended = isPlanted(scene, 'one risk covers each of two replies') ? [of] : [...untold, of];
  const own = figuresOf(scene, state, [of]);
  const isWithin = (costs: number[], limit: number[]): boolean =>
    costs.every((cost, index) => at(own, index) === 0 || cost <= at(limit, index));
  const isBefore = isWithin(figuresOf(scene, state, ended), risk);
  if (pending === null) return isBefore;
  const rest = ended.filter((other) => !pending.told.includes(other));
  const isAfter = isWithin(figuresOf(scene, state, rest), pending.risk);
  if (isPlanted(scene, 'a call under way counts as not done')) return isBefore;
  if (isPlanted(scene, 'a call under way counts as done')) return isAfter;
  return isBefore && isAfter;
}

// Steps of a request of the model.
import { type Entry, type Go, LIMITS, REQUESTS, type State, type StoreStep } from './state.ts';
import { charge, fresh, holdIn, releaseIn, settleIn, vacate } from './store.ts';
import { amountOf, answered, at, costOf, isHeardBy, most, scopesOf } from './sums.ts';
import { isDoubled } from './verdict.ts';

export function ofRequest(state: State, of: number, go: Go): void {
  const request = at(state.requests, of);
  const who = REQUESTS[of]?.by ?? 0;
  const process = at(state.processes, who);
  const { epoch } = process;
  const isHeard = isHeardBy(state, who);
  const canSpeak = !process.out && !process.dead;
  const { lost } = state.left;
  const leave = (to: State): [] => {
    at(to.processes, who).out = true;
    return [];
  };

  if (request.stage === 'new' && canSpeak) {
    if (!isHeard) go(`${of} is told that the epoch is over`, leave);
    else if (state.store.loaded) {
      go(`${of} asks to hold`, (to) => {
        const answer = holdIn(to, of);
        const one = at(to.requests, of);
        one.stage = answer === 'held' ? 'held' : 'refused';
        one.taken = answer === 'held';
        one.heard = one.taken;
        answered(to, who);
        if (one.taken && to.stale !== null) to.excused = true;
        const steps = [{ call: 'hold', of, epoch, answer } as const];
        const isTrue = scopesOf(of).some(
          (scope) =>
            most(state, scope) + amountOf(of) > at(LIMITS, scope) || isDoubled(state, scope) || state.stale !== null,
        );
        return answer === 'held' || isTrue ? steps : { steps, wrong: `${of} was refused (${answer}) for nothing` };
      });
      if (lost > 0) {
        go(`${of} asks to hold, and never hears`, (to) => {
          const answer = holdIn(to, of);
          Object.assign(at(to.requests, of), { stage: 'releasing', taken: answer === 'held' });
          to.left.lost -= 1;
          if (answer === 'held' && to.stale !== null) to.excused = true;
          return [{ call: 'hold', of, epoch, answer }];
        });
        go(`${of} asks to hold, late`, (to) => {
          Object.assign(at(to.requests, of), { stage: 'releasing', lateHold: epoch, taken: true });
          to.left.lost -= 1;
          return [];
        });
      }
    }
  }
  if (request.stage === 'held' && !process.dead) {
    go(`${of} begins to settle`, (to) => {
      at(to.requests, of).stage = 'settling';
      return [];
    });
    if (of === 1)
      go(`${of} begins to release`, (to) => {
        Object.assign(at(to.requests, of), { stage: 'releasing' });
        return [];
      });
  }
  if (request.stage === 'settling' && canSpeak) {
    if (!isHeard) go(`${of}’s settlement is told that the epoch is over`, leave);
    else {
      const settle = (to: State, isLost: boolean): StoreStep[] => {
        const steps: StoreStep[] = [];
        let answer = settleIn(to, of, false);
        steps.push({ call: 'settle', of, epoch, counted: false, answer });
        if (answer === 'unknown') {
          answer = settleIn(to, of, true);
          steps.push({ call: 'settle', of, epoch, counted: true, answer });
        }
        if (!isLost) answered(to, who);
        if (isLost || answer === 'absent') return steps;
        at(to.requests, of).stage = 'settled';
        const charged = answer === 'expired';
        const kind = charged ? 'correction' : 'settled';
        const ended = at(to.store.records, of)?.amount ?? 0;
        const cost = charged ? costOf(of) - ended : costOf(of);
        const { unbooked } = at(to.processes, who);
        if (charged) tellEnd(unbooked, of, ended, epoch);
        unbooked.push({ of, kind, cost, epoch });
        return steps;
      };
      go(`${of} settles`, (to) => settle(to, false));
      if (lost > 0) {
        go(`${of} settles, and never hears`, (to) => {
          to.left.lost -= 1;
          return settle(to, true);
        });
        go(`${of} settles, late`, (to) => {
          to.left.lost -= 1;
          at(to.requests, of).lateSettle = epoch;
          return [];
        });
      }
    }
  }
  if (request.stage === 'releasing' && canSpeak) {
    if (!isHeard) go(`${of}’s release is told that the epoch is over`, leave);
    else
      go(`${of} releases`, (to) => {
        const answer = releaseIn(to, of);
        answered(to, who);
        at(to.requests, of).stage = 'released';
        const { unbooked } = at(to.processes, who);
        // Another process may have booked the expiry before the store forgot it.
        if (answer === 'released' && at(to.requests, of).moved)
          unbooked.push({ of, kind: 'correction', cost: 0, epoch, isRefund: true });
        if (answer === 'expired') {
          const ended = at(to.store.records, of)?.amount ?? 0;
          tellEnd(unbooked, of, ended, epoch);
          unbooked.push({ of, kind: 'correction', cost: -ended, epoch });
        }
        return [{ call: 'release', of, epoch, answer }];
      });
  }
  if (request.lateHold > 0)
    go(`${of}’s late hold arrives`, (to) => {
      at(to.requests, of).lateHold = 0;
      if (to.store.epoch !== request.lateHold) return [];
      return [{ call: 'hold', of, epoch: request.lateHold, answer: holdIn(to, of) }];
    });
  if (request.lateSettle > 0)
    go(`${of}’s late settlement arrives`, (to) => {
      at(to.requests, of).lateSettle = 0;
      if (to.store.epoch !== request.lateSettle) return [];
      return [{ call: 'settle', of, epoch: request.lateSettle, counted: false, answer: settleIn(to, of, false) }];
    });
  const isNobodys = process.dead;
  if ((state.left.expired > 0 || isNobodys) && at(state.store.records, of)?.state === 'held')
    go(`${of}’s lease ends`, (to) => {
      if (!isNobodys) to.left.expired -= 1;
      const amount = at(to.store.records, of)?.amount ?? 0;
      vacate(to.store, of);
      charge(to.store, of, amount);
      to.store.records[of] = fresh('expired', amount);
      return [{ call: 'expire', of }];
    });
}

/** The process that corrects an expiry also books it: the store may forget before it reports it. */
function tellEnd(unbooked: Entry[], of: number, cost: number, epoch: number): void {
  if (unbooked.some((entry) => entry.of === of && entry.kind === 'expired')) return;
  unbooked.push({ of, kind: 'expired', cost, epoch });
}

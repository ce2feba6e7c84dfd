// Amounts of the account model, one per counter: what is booked, held, spent and owed.
import { isPlanted } from './flaws.ts';
import type { Account, Process, Progress, Scene, Stage, State, Sums } from './state.ts';

export const at = <T>(list: ArrayLike<T>, index: number): T => {
  const found = list[index];
  if (found === undefined) throw new Error(`nothing at ${index}`);
  return found;
};

const WINDOWS = 2;

/** How many counters a scene has: one per scope and window. */
export const sizeOf = (scene: Scene): number => scene.limits.length * ((scene.faults.edges ?? 0) > 0 ? WINDOWS : 1);
export const counterOf = (scene: Scene, scope: number, window: number): number => window * scene.limits.length + scope;
export const zeros = (scene: Scene): Sums => Array.from({ length: sizeOf(scene) }, () => 0);
export const plus = (one: Sums, other: Sums, times = 1): Sums =>
  one.map((value, index) => value + times * at(other, index));
export const isZero = (sums: Sums): boolean => sums.every((value) => value === 0);

/** The counters of a request: those of the window that it was admitted in. */
export const countersOf = (scene: Scene, of: number, window: number): number[] =>
  at(scene.requests, of).counters.map((scope) => counterOf(scene, scope, window));

/** The amount in each counter of a request. */
export function spread(scene: Scene, of: number, window: number, amount: number): Sums {
  const sums = zeros(scene);
  for (const counter of countersOf(scene, of, window)) sums[counter] = amount;
  return sums;
}

/** PostgreSQL's sum of each counter: entries of all kinds. */
export function sumsOf(scene: Scene, { books, requests }: State): Sums {
  let sums = zeros(scene);
  for (const of of books.settled)
    sums = plus(sums, spread(scene, of, at(requests, of).window, costOf(scene, requests, of)));
  for (const [account, expired] of Object.entries(books.expired))
    if (!books.corrected.includes(Number(account))) sums = plus(sums, expired);
  return sums;
}

/** What a request is charged. */
export function costOf(scene: Scene, requests: ReadonlyArray<Progress>, of: number): number {
  const { atSize, isGrown } = at(requests, of);
  const { cost, grows = 0 } = at(scene.requests, of);
  return atSize ? holdOf(scene, requests, of) : cost + (isGrown ? grows : 0);
}

/** The size of a request's hold. */
export function holdOf(scene: Scene, requests: ReadonlyArray<Progress>, of: number): number {
  const { amount, grows = 0 } = at(scene.requests, of);
  return amount + (at(requests, of).isGrown ? grows : 0);
}

/** What must be at risk before a reply ends: its cost; of a stream that a call has told, what that call said. */
export function figureOf(scene: Scene, requests: ReadonlyArray<Progress>, of: number): number {
  const { streamed } = at(scene.requests, of);
  if (streamed === undefined || !at(requests, of).isFigured) return costOf(scene, requests, of);
  return isPlanted(scene, 'a stream needs no risk') ? 0 : streamed;
}

/** The requests of a process in one of these stages. */
export const requestsOf = (scene: Scene, { requests }: State, who: number, ...stages: Stage[]): number[] =>
  requests.flatMap(({ stage }, of) => (at(scene.requests, of).by === who && stages.includes(stage) ? [of] : []));

/** Whether a request has been admitted, and what it counts for: its hold while it runs, then its cost. */
function exposureOf(scene: Scene, { requests }: State, of: number, isCautious: boolean): number {
  const { stage } = at(requests, of);
  const isHeld = stage === 'live' || (isCautious && /^(gone|released)/.test(stage));
  if (isHeld) return holdOf(scene, requests, of);
  if (stage === 'gone done') return figureOf(scene, requests, of);
  return /^(done|sent|told|booked)$/.test(stage) ? costOf(scene, requests, of) : 0;
}

/**
 * What every counter really owes: live holds, the cost of what was completed, wherever it is written down, and what is charged for processes
 * that died with their disks. `isCautious`: what a gone process held counts whole.
 */
export const exposure = (scene: Scene, state: State, isCautious = false): Sums =>
  state.processes.reduce(
    (sums, { gone }, who) => (gone === 'died' && !isCautious ? plus(sums, surchargeOf(scene, state, who)) : sums),
    scene.requests.reduce(
      (sums, _, of) =>
        plus(sums, spread(scene, of, at(state.requests, of).window, exposureOf(scene, state, of, isCautious))),
      zeros(scene),
    ),
  );

export const isWorker = ({ workers = [] }: Scene, who: number): boolean => workers.includes(who);

/** The number of the last call that the store has answered. */
export const answeredOf = ({ no, pending }: Process): number => (pending === null ? no : no - 1);

/** The process that made an account. */
export const ownerOf = (account: number): number => Math.floor(account / 4);

/** What is charged when an account is closed: at risk, and unbooked beyond the last batch that PostgreSQL has. */
export function chargeOf(scene: Scene, { risk, unbooked }: Account, last: number): Sums {
  const beyond = unbooked.filter(
    ({ number }) => number > last || isPlanted(scene, 'a closer does not look what was booked'),
  );
  return beyond.reduce((sums, batch) => plus(sums, batch.sums), plus(zeros(scene), risk));
}

/** What is charged in the name of a process, or will be if its accounts are closed now. */
const chargesOf = (scene: Scene, { store, books, processes }: State, who: number): Sums =>
  at(processes, who).accounts.reduce((sums, id) => {
    const row = books.rows[id];
    const figures = store.accounts[id];
    if (row?.closed) return books.corrected.includes(id) ? sums : plus(sums, books.expired[id] ?? zeros(scene));
    return figures === undefined ? sums : plus(sums, chargeOf(scene, figures, row?.last ?? 0));
  }, zeros(scene));

/** What a process that has died is charged beyond the replies that it has completed. */
function surchargeOf(scene: Scene, state: State, who: number): Sums {
  const beyond = plus(
    chargesOf(scene, state, who),
    figuresOf(scene, state, requestsOf(scene, state, who, 'gone done')),
    -1,
  );
  return beyond.map((value) => Math.max(0, value));
}

/** Whether a living process owes more than would be charged if its accounts were closed now. */
export function owes(scene: Scene, state: State, who: number): boolean {
  const unbooked = requestsOf(scene, state, who, 'done', 'sent', 'told').filter(
    (of) => !state.books.settled.includes(of),
  );
  const owed = plus(holdsOf(scene, state, requestsOf(scene, state, who, 'live')), costsOf(scene, state, unbooked));
  return plus(chargesOf(scene, state, who), owed, -1).some((value) => value < 0);
}

const sumOf = (scene: Scene, state: State, of: ReadonlyArray<number>, amountOf: (one: number) => number): Sums =>
  of.reduce((sums, one) => plus(sums, spread(scene, one, at(state.requests, one).window, amountOf(one))), zeros(scene));

/** Learns the store's count of calls. */
export function learn({ saved, ahead }: State, who: number): void {
  if (saved !== null && !ahead.includes(who)) ahead.push(who);
  ahead.sort();
}

/** A booking tells PostgreSQL the count that its process knows. */
export function tellCount(to: State, who: number): void {
  if (to.ahead.includes(who)) learn(to, BOOKS);
}

const BOOKS = -1;

/** Sum of what these requests hold. */
export const holdsOf = (scene: Scene, state: State, of: ReadonlyArray<number>): Sums =>
  sumOf(scene, state, of, (one) => holdOf(scene, state.requests, one));

/** Sum of what a call tells as the risk of these live requests. */
export const risksOf = (scene: Scene, state: State, of: ReadonlyArray<number>): Sums =>
  sumOf(scene, state, of, (one) => at(scene.requests, one).streamed ?? holdOf(scene, state.requests, one));

/** Sum of what these requests cost. */
export const costsOf = (scene: Scene, state: State, of: ReadonlyArray<number>): Sums =>
  sumOf(scene, state, of, (one) => costOf(scene, state.requests, one));

/** Sum of what must be at risk before these replies end. */
export const figuresOf = (scene: Scene, state: State, of: ReadonlyArray<number>): Sums =>
  sumOf(scene, state, of, (one) => figureOf(scene, state.requests, one));

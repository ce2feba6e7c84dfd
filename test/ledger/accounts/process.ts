// Steps of a process of the model: admit, ask, tell, settle, book (LEDGER 3, 8).
import { isPlanted } from './flaws.ts';
import { ofReplies } from './replies.ts';
import type { Call, Go, Process, Scene, State, Sums } from './state.ts';
import { isLoaded, load, type Reply, call as runCall } from './store.ts';
import {
  answeredOf,
  at,
  costsOf,
  countersOf,
  exposure,
  holdsOf,
  isWorker,
  isZero,
  learn,
  plus,
  requestsOf,
  risksOf,
  spread,
  sumsOf,
  tellCount,
  zeros,
} from './sums.ts';

export function ofProcess(scene: Scene, state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  if (process.gone !== '') return;
  ofPending(scene, state, who, go);
  if (process.ending === 'closed') return;
  ofLoading(scene, state, who, go);
  ofReplies(scene, state, who, go);
  if (process.out) return;
  if (!isWorker(scene, who)) ofBooking(scene, state, who, go);
  if (process.ending !== '') return;
  for (const of of requestsOf(scene, state, who, 'new')) ofAdmission(scene, state, who, of, go);
  for (const of of requestsOf(scene, state, who, 'live')) ofGrowth(scene, state, who, of, go);
  if (!isWorker(scene, who)) ofTick(scene, state, who, go);
  if (process.known.some((limit, scope) => limit !== at(state.limits, scope)))
    go(`${who} learns the limits`, (to) => {
      at(to.processes, who).known = [...to.limits];
    });
}

/** Escrow that no hold and no untold cost needs. */
export function idleOf(scene: Scene, state: State, who: number): Sums {
  const { escrow, pending } = at(state.processes, who);
  const taken = plus(
    holdsOf(scene, state, requestsOf(scene, state, who, 'live')),
    costsOf(scene, state, requestsOf(scene, state, who, 'done', 'sent')),
  );
  const idle = plus(escrow, taken, -1);
  if (pending === null) return idle;
  const early = isPlanted(scene, 'escrow is used before the store has granted it') ? pending.wanted : zeros(scene);
  return plus(plus(idle, pending.returned, -1), early);
}

function ofAdmission(scene: Scene, state: State, who: number, of: number, go: Go): void {
  const process = at(state.processes, who);
  const { amount } = at(scene.requests, of);
  const { window } = process;
  const counters = countersOf(scene, of, window);
  const idle = idleOf(scene, state, who);
  if (counters.every((counter) => at(idle, counter) >= amount) && isUsable(scene, process))
    go(`${who} admits ${of} from its escrow`, (to) => {
      Object.assign(at(to.requests, of), { stage: 'live', window });
      return admitted(scene, to, who, of);
    });
  if (process.pending === null) {
    const returned = idle.map((value) => Math.max(0, value));
    const wanted = spread(scene, of, window, amount);
    send(scene, state, who, `asks for ${of}`, () => ({ wanted, returned, request: of }), go);
    if (!isWorker(scene, who) && counters.every((counter) => at(idle, counter) === 0))
      send(scene, state, who, `asks ahead for ${of}`, () => ({ wanted }), go);
  }
  const owed = exposure(scene, state, true);
  if (counters.some((counter) => at(owed, counter) + amount > at(process.known, counter % process.known.length)))
    go(`${who} refuses ${of}`, (to) => {
      at(to.requests, of).stage = 'refused';
    });
}

/** Whether idle escrow may be used: the store has answered lately, and the limits have not fallen since it was granted. */
const isUsable = (scene: Scene, { asleep, known, limits }: Process): boolean =>
  !asleep &&
  (known.every((limit, scope) => limit >= at(limits, scope)) || isPlanted(scene, 'escrow of a higher limit is used'));

/** More money for a hold in its own window, for the charge of an attempt that broke: from idle escrow, or from the store. */
function ofGrowth(scene: Scene, state: State, who: number, of: number, go: Go): void {
  const process = at(state.processes, who);
  const { isGrown, window } = at(state.requests, of);
  const { grows = 0 } = at(scene.requests, of);
  if (grows === 0 || isGrown) return;
  const idle = idleOf(scene, state, who);
  const isThere = countersOf(scene, of, window).every((counter) => at(idle, counter) >= grows);
  if ((isThere && isUsable(scene, process)) || isPlanted(scene, 'a hold grows by money that is not there'))
    go(`${who} lets ${of} grow from its escrow`, (to) => {
      at(to.requests, of).isGrown = true;
      return admitted(scene, to, who, of);
    });
  if (process.pending !== null) return;
  const returned = idle.map((value) => Math.max(0, value));
  const wanted = spread(scene, of, window, grows);
  send(scene, state, who, `asks for growth of ${of}`, () => ({ wanted, returned, request: of, isGrowth: true }), go);
}

/** The law of admission: what every counter owes, this request included, is within the limits that its process knows. */
function admitted(scene: Scene, to: State, who: number, of: number): string | undefined {
  if (to.excused) return undefined;
  const owed = exposure(scene, to);
  const { known } = at(to.processes, who);
  const above = countersOf(scene, of, at(to.requests, of).window).some(
    (counter) => at(owed, counter) > at(known, counter % known.length),
  );
  return above ? `${of} is admitted above a limit` : undefined;
}

function ofTick(scene: Scene, state: State, who: number, go: Go): void {
  const process = at(state.processes, who);
  if (process.pending !== null) return;
  const returned = idleOf(scene, state, who).map((value) => Math.max(0, value));
  const account = state.store.accounts[process.account];
  const risk = risksOf(scene, state, requestsOf(scene, state, who, 'live'));
  const isRiskTold = isZero(plus(process.risk, risk, -1));
  const isBookedTold = account?.unbooked.every(({ number }) => number > process.booked) ?? true;
  const isNews = requestsOf(scene, state, who, 'done').length > 0 || !isRiskTold || !isBookedTold || process.asleep;
  if (isNews) send(scene, state, who, 'tells', () => ({}), go);
  if (!isZero(returned)) send(scene, state, who, 'tells and returns its escrow', () => ({ returned }), go);
}

/** A call with everything that changed. */
export function compose(scene: Scene, state: State, who: number, part: Partial<Call>): Call {
  const process = at(state.processes, who);
  const told = requestsOf(scene, state, who, 'done');
  const live = requestsOf(scene, state, who, 'live');
  return {
    ...{ account: process.account, epoch: process.epoch, no: process.no + 1, told, live, corrected: [] },
    ...{ spend: costsOf(scene, state, told), risk: risksOf(scene, state, live), returned: zeros(scene) },
    ...{
      forgotten: [],
      isLast: false,
      wanted: zeros(scene),
      request: -1,
      isGrowth: false,
      registered: zeros(scene),
      limits: [...process.known],
    },
    ...{ window: process.window, batch: process.batch, booked: process.booked, ...part },
  };
}

/** A call that is answered; whose answer is lost; that is itself late. */
export function send(scene: Scene, state: State, who: number, what: string, part: () => Partial<Call>, go: Go): void {
  const begin = (to: State): Call => {
    const call = compose(scene, to, who, part());
    const process = at(to.processes, who);
    Object.assign(process, { pending: call, no: call.no });
    for (const of of call.told) at(to.requests, of).stage = 'sent';
    for (const of of call.live) at(to.requests, of).isFigured = at(scene.requests, of).streamed !== undefined;
    return call;
  };
  go(`${who} ${what}`, (to) => hear(scene, to, who, runCall(scene, to, begin(to))));
  if (state.left.lost === 0) return;
  go(`${who} ${what}, and never hears`, (to) => {
    to.left.lost -= 1;
    runCall(scene, to, begin(to));
  });
  go(`${who} ${what}, late`, (to) => {
    to.left.lost -= 1;
    to.late.push(begin(to));
  });
}

function ofPending(scene: Scene, { processes }: State, who: number, go: Go): void {
  const { pending } = at(processes, who);
  if (pending !== null) go(`${who} repeats its call`, (to) => hear(scene, to, who, runCall(scene, to, pending)));
}

/** The process learns the outcome of its call. */
function hear(scene: Scene, to: State, who: number, reply: Reply): string | undefined {
  const process = at(to.processes, who);
  const call = process.pending;
  Object.assign(process, { pending: null, asleep: false });
  if (call === null) return undefined;
  // However the last call was answered: the account ends, or closers end it.
  if (call.isLast && process.ending === 'closed') {
    Object.assign(process, { gone: 'stopped', ending: '', read: null });
    return undefined;
  }
  if (reply.outcome !== 'done') for (const of of call.told) at(to.requests, of).stage = 'done';
  if (reply.outcome === 'window') process.window = to.window;
  if (reply.outcome === 'stale' || reply.outcome === 'epoch') leave(scene, to, who);
  else learn(to, who);
  if (reply.outcome !== 'done') return undefined;
  process.escrow = reply.escrow;
  process.risk = reply.granted && call.request >= 0 ? plus(call.risk, call.wanted) : call.risk;
  for (const of of call.told) Object.assign(at(to.requests, of), { stage: 'told', batch: call.batch, isEnded: true });
  process.corrections.push(...call.corrected.map((account) => ({ account, batch: call.batch })));
  if (!process.out) {
    if (!reply.granted) return undefined;
    process.limits = [...call.limits];
    // A limit fell while the call was under way: the escrow goes back, and the request asks again.
    const isLower = process.known.some((limit, scope) => limit < at(call.limits, scope));
    if (call.request < 0 || (isLower && !isPlanted(scene, 'escrow of a higher limit is used'))) return undefined;
    const request = at(to.requests, call.request);
    // The reply may have ended meanwhile: then the escrow goes back.
    if (call.isGrowth && request.stage !== 'live') return undefined;
    Object.assign(request, call.isGrowth ? { isGrown: true } : { stage: 'live', window: call.window });
    return admitted(scene, to, who, call.request);
  }
  // The first call of a process that was away.
  process.joined = process.epoch;
  process.isForgotten = false;
  process.limits = [...call.limits];
  if (to.books.open) process.out = false;
  return undefined;
}

/** A process leaves its account: what it has not seen booked is told again by the next one. */
export function leave(scene: Scene, to: State, who: number): undefined {
  const process = at(to.processes, who);
  for (const of of requestsOf(scene, to, who, 'sent', 'told')) {
    const isBooked = to.books.settled.includes(of);
    Object.assign(at(to.requests, of), { stage: isBooked ? 'booked' : 'done', batch: 0 });
  }
  for (const of of requestsOf(scene, to, who, 'done'))
    if (to.books.settled.includes(of)) at(to.requests, of).stage = 'booked';
  Object.assign(process, { out: true, account: -1, no: 0, pending: null, escrow: zeros(scene), read: null });
  Object.assign(process, { risk: zeros(scene), ending: '' });
  Object.assign(process, { batch: 1, sealed: 0, booked: 0, corrections: [], joined: 0 });
}

/** Counters that are absent are loaded with PostgreSQL's sums: read, then loaded. */
function ofLoading(scene: Scene, state: State, who: number, go: Go): void {
  const { read, epoch } = at(state.processes, who);
  const isThere = state.store.epoch === epoch && state.books.open && state.books.epoch === epoch;
  if (read === null && isThere && state.store.counters.includes(null) && wants(scene, state, who))
    go(`${who} reads the sums`, (to) => {
      at(to.processes, who).read = { sums: sumsOf(scene, to), epoch };
    });
  if (read !== null)
    go(`${who} loads`, (to) => {
      at(to.processes, who).read = null;
      if (state.store.epoch === read.epoch) load(to, read.sums);
    });
}

const wants = (scene: Scene, state: State, who: number): boolean =>
  at(state.processes, who).out ||
  Object.keys(state.store.accounts).some((id) => !isLoaded(scene, state, Number(id))) ||
  requestsOf(scene, state, who, 'new', 'live', 'done').length > 0;

function ofBooking(scene: Scene, state: State, who: number, go: Go): void {
  const { batch, sealed, pending, corrections, ending } = at(state.processes, who);
  const early = isPlanted(scene, 'what was not told is booked')
    ? (['told', 'sent', 'done'] as const)
    : (['told'] as const);
  const isOpen = pending !== null && pending.batch === batch && pending.told.length + pending.corrected.length > 0;
  const collected = requestsOf(scene, state, who, ...early).filter(
    (of) => isEarly(state, of) || at(state.requests, of).batch === batch,
  );
  const corrects = corrections.some((one) => one.batch === batch);
  if (sealed === 0 && ending === '' && (!isOpen || early.length > 1) && (collected.length > 0 || corrects))
    go(`${who} seals batch ${batch}`, (to) => {
      const process = at(to.processes, who);
      if (early.length > 1) for (const of of collected) Object.assign(at(to.requests, of), { stage: 'told', batch });
      Object.assign(process, { sealed: batch, batch: batch + 1 });
    });
  if (sealed === 0) return;
  go(`${who} books batch ${sealed}`, (to) => {
    if (!book(scene, to, who)) return leave(scene, to, who);
    const process = at(to.processes, who);
    for (const of of requestsOf(scene, to, who, 'told'))
      if (at(to.requests, of).batch === sealed) at(to.requests, of).stage = 'booked';
    process.corrections = process.corrections.filter((one) => one.batch !== sealed);
    Object.assign(process, { booked: sealed, sealed: 0 });
  });
  if (state.left.lost > 0)
    go(`${who} books batch ${sealed}, and never hears`, (to) => {
      to.left.lost -= 1;
      book(scene, to, who);
    });
}

const isEarly = ({ requests }: State, of: number): boolean => at(requests, of).stage !== 'told';

/** One transaction: only in its epoch and while the account is not closed. False: neither. */
function book(scene: Scene, to: State, who: number): boolean {
  const { books, requests, processes } = to;
  const { account, epoch, sealed, corrections } = at(processes, who);
  books.rows[account] ??= { last: 0, no: 0, closed: false };
  const row = books.rows[account];
  if (books.epoch !== epoch || (row.closed && !isPlanted(scene, 'a closed account is booked'))) return false;
  tellCount(to, who);
  row.last = Math.max(row.last, sealed);
  row.no = Math.max(row.no, answeredOf(at(processes, who)));
  requests.forEach(({ stage, batch }, of) => {
    if (at(scene.requests, of).by === who && stage === 'told' && batch === sealed && !books.settled.includes(of))
      books.settled.push(of);
  });
  for (const one of corrections)
    if (one.batch === sealed && !books.corrected.includes(one.account)) books.corrected.push(one.account);
  books.settled.sort();
  books.corrected.sort();
  return true;
}

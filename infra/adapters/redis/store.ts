// How is a store call said to a Redis, over TCP or HTTPS? As one script with one argument, whose answer is strings only (LEDGER 3).
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { RateReply } from '#core/ports/rates.ts';
import type {
  Expired,
  HoldAnswer,
  HoldNote,
  HoldOperation,
  Load,
  Registration,
  ReleaseAnswer,
  SettleAnswer,
  SettleNote,
  SettleOperation,
  StaleEpoch,
  Store,
  StoreCall,
  StoreReply,
} from '#core/ports/store.ts';
import { fromCount, fromMove, fromRates, toMove, toRefusal, toTold } from './rates.ts';
import { SCRIPT } from './script.ts';
import { toLoaded, toSurvey, toUnbooked } from './survey.ts';
import { listOf, textOf } from './texts.ts';

/**
 * Runs the script in one step on the server that keeps `key`. Answers the script's reply, strings and lists of such.
 * Throws when the server cannot be asked or its answer is lost.
 */
export type Evaluate = (script: string, key: string, argument: string) => Promise<unknown>;

export interface RedisStoreDependencies {
  readonly evaluate: Evaluate;
  readonly instanceUid: string;
}

export function createRedisStore({ evaluate, instanceUid }: RedisStoreDependencies): Store {
  if (!/^[^{}]+$/.test(instanceUid)) throw new Error(`"${instanceUid}" cannot name the keys of an instance`);
  const key = `{${instanceUid}}:epoch`;
  const ask = async (argument: object): Promise<ReadonlyArray<unknown>> => {
    const reply = await evaluate(SCRIPT, key, JSON.stringify(argument));
    if (!Array.isArray(reply)) throw new Error('the store did not answer as its script does');
    return reply;
  };
  return {
    async call(call) {
      const reply = await ask(fromCall(call));
      return reply[0] === 'epoch' ? toStale(reply) : toReply(reply, call);
    },
    async forget(entries) {
      if (entries.length > 0) await ask({ forget: entries.map(({ id, kind }) => [id, kind]) });
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const [, spent] = await ask({ read: counters.map(fromCounter) });
      return listOf(spent).map((amount) => (amount === '' ? undefined : BigInt(textOf(amount))));
    },
    async begin(epoch) {
      const [, begun] = await ask({ begin: `${epoch}` });
      return Number(textOf(begun));
    },
    async survey(counters) {
      return toSurvey(await ask({ survey: counters.map(fromCounter) }));
    },
    async unbooked(silence, most) {
      return toUnbooked(await ask({ unbooked: [`${silence}`, `${most}`] }));
    },
    async loaded(from, most) {
      return toLoaded(await ask({ loaded: [`${from}`, `${most}`] }));
    },
    async clear() {
      await ask({ clear: 'yes' });
    },
  };
}

const fromCounter = ({ scopeId, window }: ScopeWindow): string[] => [scopeId, `${window.start}:${window.end}`];

function fromCall(call: StoreCall) {
  const { epoch, from, marks, registers, settles, releases, renewals, loads, adjusts, holds, moves } = call;
  return {
    epoch: `${epoch}`,
    ...(from === undefined ? {} : { from: [from.process, `${from.acknowledged}`] }),
    ...(marks === undefined ? {} : { marks: [...marks].map(([process, calls]) => [process, `${calls}`]) }),
    ...(registers === undefined ? {} : { registers: registers.map(fromRegistration) }),
    settles: settles.map(fromSettle),
    releases: releases.map(({ id, lease, called }) => ({
      ...{ id, lease: `${lease}` },
      ...(called === true ? { called: 'yes' } : {}),
    })),
    renewals: renewals.map(({ id, known, lease }) => ({
      ...{ id, lease: `${lease}` },
      ...(known === undefined ? {} : { known: `${known}` }),
    })),
    loads: loads.map(fromLoad),
    ...(adjusts === undefined ? {} : { adjusts: adjusts.map(fromAdjustment) }),
    holds: holds.map(fromHold),
    ...(moves === undefined || moves.length === 0 ? {} : { moves: moves.map(fromMove) }),
  };
}

const fromLoad = (load: Load) => ({
  ...{ counter: fromCounter(load), spent: `${load.spent}` },
  ...(load.booked === undefined ? {} : { booked: load.booked.map(({ id, kind }) => `${id} ${kind}`) }),
  ...(load.deadline === undefined ? {} : { deadline: `${Math.floor(load.deadline)}` }),
});

const fromAdjustment = (adjustment: NonNullable<StoreCall['adjusts']>[number]) => ({
  ...{ counter: fromCounter(adjustment), by: `${adjustment.by}`, deadline: `${Math.floor(adjustment.deadline)}` },
});

const fromRegistration = ({ id, amount, at, known, charged, note, lease }: Registration) => ({
  ...{ id, amount: `${amount}`, at: `${Math.floor(at)}`, lease: `${Math.ceil(lease)}` },
  ...(known === undefined ? {} : { known: `${known}` }),
  ...(charged === undefined ? {} : { charged: `${charged}` }),
  ...{ scopes: note.charges.map(({ scopeId }) => scopeId), note: JSON.stringify(fromNote(note)) },
});

function fromSettle({ id, cost, counters, counted, note, tokens }: SettleOperation) {
  return {
    ...{ id, cost: `${cost}` },
    ...(note === undefined ? {} : fromSettleNote(note, counters !== undefined)),
    ...(counters === undefined ? {} : { counters: counters.map(fromCounter) }),
    ...(counted === undefined ? {} : { counted: `${counted}` }),
    ...(tokens === undefined ? {} : { tokens: fromCount(tokens) }),
  };
}

function fromHold({ id, amount, least, counters, note, deadline, lease, rates }: HoldOperation) {
  return {
    ...{ id, amount: `${amount}`, least: `${least}` },
    counters: counters.map((counter) => [...fromCounter(counter), `${counter.limit}`]),
    scopes: note.charges.map(({ scopeId }) => scopeId),
    // Opaque to the script; whoever books the end of its lease reads it.
    note: JSON.stringify(fromNote(note)),
    ...{ deadline: `${Math.floor(deadline)}`, lease: `${Math.ceil(lease)}` },
    ...(rates === undefined ? {} : { rates: fromRates(rates) }),
  };
}

/** The scopes go along only where the store may not have them with the hold. */
function fromSettleNote(note: SettleNote, isUnknown: boolean) {
  const { kind, charges, ...rest } = note;
  const said = { kind, said: JSON.stringify(rest) };
  return isUnknown ? { ...said, charges: charges.map(fromCounter), note: JSON.stringify(fromNote(note)) } : said;
}

/** Only what it promises: an object that has more (a limit, say) is a note too. */
const fromNote = ({ charges, model, identifier }: HoldNote): HoldNote => ({
  charges: charges.map(({ scopeId, window: { start, end } }) => ({ scopeId, window: { start, end } })),
  ...{ model, identifier },
});

const toStale = ([, now, epoch]: ReadonlyArray<unknown>): StaleEpoch => ({
  outcome: 'epoch',
  now: Number(textOf(now)),
  epoch: Number(textOf(epoch)),
});

function toReply(reply: ReadonlyArray<unknown>, call: StoreCall): StoreReply {
  const [outcome, now, settles, releases, holds, expired, calls, told, moves] = reply;
  const rates = toTold(listOf(told ?? []));
  if (outcome !== 'done') throw new Error('the store did not answer as its script does');
  return {
    outcome: 'done',
    now: Number(textOf(now)),
    calls: Number(textOf(calls)),
    settles: listOf(settles).map((answer) => toSettle(listOf(answer).map(textOf))),
    releases: listOf(releases).map((answer) => toRelease(listOf(answer).map(textOf))),
    holds: listOf(holds).map((answer, index) => {
      const left = rates.get(call.holds[index]?.id ?? '');
      return toHold(listOf(answer).map(textOf), left === undefined ? {} : { rates: left });
    }),
    moves: listOf(moves ?? []).map((answer) => toMove(listOf(answer).map(textOf))),
    expired: listOf(expired).map((one) => toExpired(listOf(one).map(textOf))),
  };
}

function toSettle([outcome, ...rest]: ReadonlyArray<string>): SettleAnswer {
  if (outcome === 'settled' || outcome === 'released' || outcome === 'unknown') return { outcome };
  if (outcome === 'expired') return { outcome, charged: BigInt(textOf(rest[0])) };
  if (outcome === 'absent') return { outcome, counters: rest.map(Number) };
  throw new Error(`the store answered a settlement with "${outcome}"`);
}

function toRelease([outcome, charged]: ReadonlyArray<string>): ReleaseAnswer {
  if (outcome === 'released' || outcome === 'settled') return { outcome };
  if (outcome === 'expired') return { outcome, charged: BigInt(textOf(charged)) };
  throw new Error(`the store answered a release with "${outcome}"`);
}

function toHold([outcome, ...rest]: ReadonlyArray<string>, left: { readonly rates?: RateReply }): HoldAnswer {
  if (outcome === 'window' || outcome === 'late') return { outcome };
  if (outcome === 'held') return { outcome, amount: BigInt(textOf(rest[0])), ...left };
  if (outcome === 'exceeded') return { outcome, counter: Number(rest[0]), spent: BigInt(textOf(rest[1])), ...left };
  if (outcome === 'limited') return { outcome, ...toRefusal(rest), rates: left.rates ?? { left: [] } };
  if (outcome === 'busy') return { outcome, counter: Number(rest[0]), ...left };
  if (outcome === 'absent') return { outcome, counters: rest.map(Number) };
  throw new Error(`the store answered a hold with "${outcome}"`);
}

function toExpired([id, charged, note]: ReadonlyArray<string>): Expired {
  // Written by `fromHold`, kept as it was.
  return { id: textOf(id), charged: BigInt(textOf(charged)), note: JSON.parse(textOf(note)) as HoldNote };
}

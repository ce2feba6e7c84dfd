// The store in Redis, over TCP or HTTPS: one script whose arguments and replies are strings only (LEDGER 3, 4).
import type { ScopeWindow } from '#core/ports/policy.ts';
import type { EntryName, StaleEpoch, Store } from '#core/ports/store.ts';
import { fromCounter, toArguments } from './call-arguments.ts';
import { toReply } from './reply.ts';
import { SCRIPT } from './script.ts';
import { toLoaded, toSurvey, toUnbooked } from './survey.ts';
import { listOf, textOf } from './texts.ts';

/**
 * Runs the script atomically on the server of `key`. Returns its reply: strings, and lists of strings or lists.
 * Throws when the server is away or its reply is lost.
 */
export type Evaluate = (script: string, key: string, args: ReadonlyArray<string>) => Promise<unknown>;

export function createRedisStore({ evaluate, instanceUid }: { evaluate: Evaluate; instanceUid: string }): Store {
  if (!/^[^{}]+$/.test(instanceUid))
    throw new Error(`instance uid "${instanceUid}": must not be empty or contain braces`);
  const key = `{${instanceUid}}:epoch`;
  const ask = async (args: ReadonlyArray<string>): Promise<ReadonlyArray<unknown>> => {
    const reply = await evaluate(SCRIPT, key, args);
    if (!Array.isArray(reply)) throw new Error('unexpected reply of the store');
    return reply;
  };
  return {
    async call(call) {
      const reply = await ask(toArguments(call));
      return reply[0] === 'epoch' ? toStale(reply) : toReply(reply, call);
    },
    async forget(entries) {
      if (entries.length > 0) await ask(toForgetArguments(entries));
    },
    async read(counters) {
      if (counters.length === 0) return [];
      const [, spent] = await ask(['read', fromCounters(counters)]);
      return listOf(spent).map((amount) => (amount === '' ? undefined : BigInt(textOf(amount))));
    },
    async begin(epoch) {
      const [, begun] = await ask(['begin', `${epoch}`]);
      return Number(textOf(begun));
    },
    async survey(counters) {
      return toSurvey(await ask(['survey', fromCounters(counters)]));
    },
    async unbooked(idleFor, max) {
      return toUnbooked(await ask(['unbooked', `${idleFor}`, `${max}`]));
    },
    async loaded(from, max) {
      return toLoaded(await ask(['loaded', `${from}`, `${max}`]));
    },
    async clear() {
      await ask(['clear']);
    },
  };
}

const toStale = ([, now, epoch]: ReadonlyArray<unknown>): StaleEpoch => ({
  outcome: 'epoch',
  now: Number(textOf(now)),
  epoch: Number(textOf(epoch)),
});

const fromCounters = (counters: ReadonlyArray<ScopeWindow>): string => JSON.stringify(counters.map(fromCounter));

/** The arguments of `forget`. Most entries are settled, so their ids go as they are. */
function toForgetArguments(entries: ReadonlyArray<EntryName>): string[] {
  const others = entries.filter(({ kind }) => kind !== 'settled').map(({ id, kind }) => [id, kind]);
  const settled = entries.filter(({ kind }) => kind === 'settled').map(({ id }) => id);
  return ['forget', JSON.stringify(others), `${settled.length}`, ...settled];
}
